// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "app/commands/terminal.h"
#include "app/commands/top_table.h"
#include "app/runtime/wiring.h"
#include "base/file.h"
#include "base/log.h"

namespace gpuledger::app {
namespace {

constexpr size_t kBatchColumns = 160;

// Blocked in all later threads and read like keys: the terminal is restored before the exit.
UniqueFd take_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

class LiveTable {
 public:
  LiveTable(Pipeline& pipeline, const Config& config, const Clock& clock, int signals)
      : pipeline_(pipeline), interval_(config.sample_interval), clock_(clock), signals_(signals) {
    view_.node = config.node_name;
    view_.keys = true;
  }

  Status run() {
    if (const Status entered = terminal_.enter(); !entered.ok()) return entered;
    Nanoseconds due = clock_.now().steady;
    while (!ended_) {
      if (clock_.now().steady >= due) {
        look();
        due = std::max(due + interval_, clock_.now().steady);
      }
      draw();
      wait_until(due);
    }
    return ok_status();
  }

 private:
  void look() {
    before_ = snapshot_ ? snapshot_->cycle : nullptr;
    snapshot_ = pipeline_.run_cycle();
  }

  void draw() {
    const Terminal::Size size = Terminal::size();
    view_.columns = size.columns;
    view_.rows = size.rows;
    Terminal::show(write_top(*snapshot_->cycle, before_.get(), view_));
  }

  // Ends at a key or signal too.
  void wait_until(Nanoseconds due) {
    pollfd watched[] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - clock_.now().steady).count();
    if (::poll(watched, 2, static_cast<int>(std::max<int64_t>(0, left))) < 0 && errno != EINTR) ended_ = true;
    if (watched[1].revents != 0) take_signal();
    if (watched[0].revents != 0) take_keys();
  }

  void take_signal() {
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) return;
    if (info.ssi_signo == SIGWINCH) return;  // draw() reads the size every time
    if (info.ssi_signo != SIGTSTP) {
      ended_ = true;
      return;
    }
    terminal_.leave();
    ::kill(::getpid(), SIGSTOP);
    ended_ = !terminal_.enter().ok();
  }

  void take_keys() {
    char keys[64];
    const ssize_t count = ::read(STDIN_FILENO, keys, sizeof keys);
    if (count <= 0) ended_ = true;  // it was closed
    for (ssize_t i = 0; i < count; ++i) {
      switch (keys[i]) {
        case 'q':
        case 'Q': ended_ = true; break;
        case 'w': view_.order = TopOrder::kWatts; break;
        case 'm': view_.order = TopOrder::kMemory; break;
        case 'e': view_.order = TopOrder::kEnergy; break;
        case 'i': view_.order = TopOrder::kIdle; break;
        default: break;
      }
    }
  }

  Pipeline& pipeline_;
  const Nanoseconds interval_;
  const Clock& clock_;
  const int signals_;
  TopView view_;
  Terminal terminal_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::shared_ptr<const Cycle> before_;
  bool ended_ = false;
};

Status print_once(Pipeline& pipeline, const Config& config) {
  const auto first = pipeline.run_cycle();
  std::this_thread::sleep_for(config.sample_interval);
  const auto second = pipeline.run_cycle();
  const SampleBatch& batch = second->cycle->batch;
  if (!batch.health.up) return Error{Code::kUnavailable, batch.health.reason};
  TopView view;
  view.node = config.node_name;
  view.columns = ::isatty(STDOUT_FILENO) ? Terminal::size().columns : kBatchColumns;
  std::string text;
  for (const std::string& line : write_top(*second->cycle, first->cycle.get(), view)) text += line + "\n";
  return write_to_stdout(text);
}

}  // namespace

Status top_command(const Config& config, const ConfigSources& /*sources*/) {
  const SystemClock clock;
  Config quiet = config;
  // These are for the program that serves; top writes no file.
  quiet.textfile.clear();
  quiet.state_file.clear();
  UniqueFd signals;
  if (!config.top_batch) {
    if (!::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO)) {
      Terminal none;
      return none.enter();
    }
    signals = take_signals();
    if (!signals) return errno_error("signalfd", "", errno);
    // Log lines would garble the table, which shows failures itself.
    (void)configure_log("error", config.log_format);
  }
  auto node = open_node(quiet, clock);
  if (!node.ok()) return node.error();
  if (config.top_batch) return print_once(*node->pipeline, config);
  return LiveTable(*node->pipeline, config, clock, signals.get()).run();
}

}  // namespace gpuledger::app
