// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "app/commands/signals.h"
#include "app/runtime/sampler.h"
#include "app/runtime/wiring.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/version.h"
#include "http/server.h"
#include "task/thread.h"

namespace gpuledger::app {
namespace {

// SIGTERM must take at most 2 s. All waits share kToWait. At kToEnd the program exits, even if a thread still runs.
constexpr Nanoseconds kToWait = std::chrono::milliseconds(1500);
constexpr Nanoseconds kToEnd = std::chrono::milliseconds(1700);
constexpr Nanoseconds kPatienceWithDriver = std::chrono::milliseconds(1000);
constexpr Nanoseconds kPatienceWithDisk = std::chrono::milliseconds(300);
constexpr Nanoseconds kPatienceWithUpstream = std::chrono::milliseconds(500);

// A call that hangs cannot be cancelled; the exit must not wait for it.
[[noreturn]] void end_without_the_driver() {
  log_warn("the driver does not answer; exiting without closing it");
  std::_Exit(EXIT_SUCCESS);
}

// Handles SIGTERM and SIGINT while the main thread opens the driver, which may hang, and limits the time from the
// signal to the exit. Its thread is made at the start: at the end there may be none to be had.
class Ending {
 public:
  Status watch() {
    return thread_.start([this](const std::stop_token& stop) { run(stop); });
  }

  // From here on signals are the main thread's. True: one came before.
  bool started() {
    MutexLock lock(mutex_);
    started_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this]() GL_REQUIRES(mutex_) { return signals_left_; });
    return began_.has_value();
  }

  // From any thread; only the first time counts.
  void begin() {
    const MutexLock lock(mutex_);
    if (!began_) began_ = std::chrono::steady_clock::now();
    changed_.notify_all();
  }

  // How long a wait may still take, at most `most`. Never 0, because a thread that has ended needs a moment to report
  // it.
  Nanoseconds left(Nanoseconds most) const {
    constexpr Nanoseconds kMoment = std::chrono::milliseconds(1);
    const MutexLock lock(mutex_);
    return std::clamp<Nanoseconds>(*began_ + kToWait - std::chrono::steady_clock::now(), kMoment, most);
  }

 private:
  void run(const std::stop_token& stop) {
    if (signal_came_before_the_start(stop)) begin();
    MutexLock lock(mutex_);
    signals_left_ = true;
    changed_.notify_all();
    const auto has_started = [this]() GL_REQUIRES(mutex_) { return started_; };
    if (began_ && !changed_.wait_for(lock, stop, kPatienceWithDriver, has_started) && !stop.stop_requested())
      end_without_the_driver();
    changed_.wait(lock, stop, [this]() GL_REQUIRES(mutex_) { return began_.has_value(); });
    if (stop.stop_requested()) return;
    changed_.wait_until(lock, stop, *began_ + kToEnd, [] { return false; });
    if (stop.stop_requested()) return;
    log_warn("some threads did not end in time; exiting without them");
    std::_Exit(EXIT_SUCCESS);
  }

  bool signal_came_before_the_start(const std::stop_token& stop) const {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    constexpr timespec kBeat{0, 20'000'000};
    const auto started = [this] {
      const MutexLock lock(mutex_);
      return started_;
    };
    while (!stop.stop_requested() && !started())
      if (sigtimedwait(&ends, nullptr, &kBeat) > 0) return true;
    return false;
  }

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool started_ GL_GUARDED_BY(mutex_) = false;
  bool signals_left_ GL_GUARDED_BY(mutex_) = false;  // to the main thread
  std::optional<std::chrono::steady_clock::time_point> began_ GL_GUARDED_BY(mutex_);
  task::Thread thread_;  // last: it uses the others
};

Nanoseconds stale_after(const Config& config) {
  return std::max<Nanoseconds>(3 * config.sample_interval, std::chrono::seconds(10));
}

http::ServerOptions server_options(const Config& config) {
  http::ServerOptions options;
  options.listen_addresses = config.listen_addresses;
  options.metrics_path = config.metrics_path;
  options.web_config_file = config.web_config_file;
  options.allowed_hosts = config.allowed_hosts;
  options.stale_after = stale_after(config);
  options.on_web_config = log_web_config;
  return options;
}

void reload(Config& config, const ConfigSources& sources, Sampler& sampler, http::Server& server) {
  auto fresh = reread_config(sources);
  if (!fresh.ok()) {
    log_error("settings kept as they were", {{"error", fresh.error().message}});
  } else {
    for (const std::string& name : changes_needing_restart(config, *fresh)) {
      log_warn("this change takes effect after a restart", {{"setting", name}});
    }
    take_live_changes(config, *fresh);  // settings that need a restart stay as they are
    (void)configure_log(config.log_level, config.log_format);
    sampler.change_interval(config.sample_interval);
    server.change_stale_after(stale_after(config));
    sampler.post([config](Pipeline& pipeline) { pipeline.change(booking_rules(config), pipeline_options(config)); });
    log_info("settings read again");
  }
  if (const Status web = server.reload(); !web.ok()) {
    log_error("web config kept as it was", {{"error", web.error().message}});
  }
}

// A wrong path is an error at the start. A full disk, another program that writes the file, or a state that could not
// be read back is no reason to stop measuring: the log says so, and it is tried again.
Status check_file(const char* flag, const SourceHealth& health) {
  const bool tries_again =
      health.errors.contains(code_name(Code::kUnavailable)) || health.errors.contains(StateKeeper::kUnreadable);
  if (health.up || tries_again) return ok_status();
  return Error{Code::kPermission, std::string(flag) + ": " + health.reason};
}

void announce(const Config& config, const Node& node, const http::Server& server) {
  log_info(node.sim ? "watching a SIMULATED node" : "watching", {{"gpus", node.summary}, {"version", version()}});
  for (const std::string& address : server.addresses()) {
    log_info("serving", {{"address", address}, {"path", config.metrics_path}});
  }
}

}  // namespace

Status serve_command(const Config& given, const ConfigSources& sources) {
  const sigset_t signals = block_signals({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2});
  Config config = given;
  const SystemClock clock;
  SnapshotCell snapshots;
  Ending ending;  // declared before the parts whose end it limits
  GL_TRY_STATUS(ending.watch().about("the watch for signals"));
  GL_TRY(node, open_node(config, clock));
  if (auto options = upstream_options(config)) {
    auto upstream = std::make_unique<Upstream>(std::move(*options), clock);
    GL_TRY_STATUS(Status(upstream->started()).about("dcgm-exporter"));
    upstream->wait(kPatienceWithUpstream);
    node.pipeline->serve_upstream(std::move(upstream));
  }
  if (auto options = push_options(config)) {
    GL_TRY(pusher, Pusher::open(std::move(*options)));
    node.pipeline->push_to(std::move(pusher));
  }
  GL_TRY(server, http::Server::start(server_options(config), snapshots, clock));
  // The first cycle runs here, so that a file that cannot be written is reported before serving.
  snapshots.store(node.pipeline->run_cycle());
  FileWriter* const textfile = node.pipeline->textfile();
  if (textfile) GL_TRY_STATUS(check_file("--textfile", textfile->health()));
  StateKeeper* const keeper = node.pipeline->state_keeper();
  if (keeper) GL_TRY_STATUS(check_file("--state-file", keeper->health()));
  announce(config, node, *server);

  Sampler sampler(*node.pipeline, config.sample_interval, snapshots);
  GL_TRY_STATUS(sampler.start().about("the sampler"));
  bool asked_to_end = ending.started();
  while (!asked_to_end) {
    const int signal = wait_for_signal(signals);
    if (signal == SIGHUP) {
      reload(config, sources, sampler, *server);
    } else if (signal == SIGUSR1) {
      sampler.post([](Pipeline& pipeline) { pipeline.release_gpus(); });
    } else if (signal == SIGUSR2) {
      sampler.post([](Pipeline& pipeline) { pipeline.resume_gpus(); });
    } else {
      asked_to_end = true;
    }
  }
  ending.begin();
  log_info("stopping");
  server->stop();
  const bool ended = sampler.stop(ending.left(kPatienceWithDriver));
  if (textfile && !textfile->remove(ending.left(kPatienceWithDisk))) log_warn("the textfile cannot be removed in time");
  if (!ended) end_without_the_driver();
  if (keeper && !keeper->finish(ending.left(kPatienceWithDisk))) log_warn("the state is not on the disk yet");
  // Uses all the time that is left: if the node is removed, its last joules would be lost.
  node.pipeline->finish_push(snapshots.load()->cycle, ending.left(kToWait));
  return ok_status();
}

}  // namespace gpuledger::app
