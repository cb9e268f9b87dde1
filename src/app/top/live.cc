// SPDX-License-Identifier: Apache-2.0
#include "app/top/live.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "app/top/keys.h"
#include "app/top/table.h"
#include "app/top/terminal.h"
#include "app/top/view.h"

namespace gpuledger::app::top {
namespace {

// The rest of an escape sequence comes at once, or it was the escape key.
constexpr int kPatienceWithSequence = 50;

// As without a handler. In an orphaned process group (ssh -t NODE gpu-ledger top) the kernel does not stop us, because
// no shell could continue us.
void stop_as_usual() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::kill(::getpid(), SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

class LiveTable {
 public:
  LiveTable(const Feed& feed, const std::string& source, const std::string& note, int signals)
      : feed_(feed), source_(source), note_(note), signals_(signals) {}

  Status run() {
    GL_TRY_STATUS(terminal_.enter());
    while (!ended_) {
      draw();
      wait();
    }
    return ok_status();
  }

 private:
  void draw() {
    const Reading reading = feed_.latest();
    around_.gpus.clear();
    for (const Books::Gpu& gpu : reading.now->gpus) around_.gpus.push_back(gpu.index);
    const Situation situation{source_ + ", as of " + clock_text(reading.now->at), reading.trouble, note_};
    const Screen screen = write_screen(*reading.now, reading.before.get(), view_, situation, Terminal::size());
    view_.offset = screen.offset;
    around_.page = screen.page;
    terminal_.show(screen);
  }

  // For news, a key or a signal.
  void wait() {
    pollfd watched[] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}, {feed_.news_fd(), POLLIN, 0}};
    const int ready = ::poll(watched, 3, keys_.waits() ? kPatienceWithSequence : -1);
    if (ready < 0 && errno != EINTR) ended_ = true;
    if (ready == 0) take(keys_.flush());
    if (ready <= 0) return;
    if (watched[2].revents != 0) feed_.forget_news();
    if (watched[1].revents != 0) return take_signal();  // may take long, so the other events are polled again
    if (watched[0].revents != 0) take_input();
  }

  void take_signal() {
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) return;
    switch (info.ssi_signo) {
      case SIGWINCH: return;  // draw() reads the size every time
      case SIGTSTP:
        terminal_.leave();
        stop_as_usual();
        [[fallthrough]];
      case SIGCONT:  // a shell may have changed the terminal meanwhile
        if (!terminal_.enter().ok()) ended_ = true;
        return;
      default: ended_ = true;
    }
  }

  void take_input() {
    char bytes[256];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count <= 0) {
      ended_ = true;  // it was closed
      return;
    }
    take(keys_.take({bytes, static_cast<size_t>(count)}));
  }

  void take(const std::vector<Key>& keys) {
    for (const Key& key : keys) {
      if (!take_key(key, around_, view_)) ended_ = true;
    }
  }

  const Feed& feed_;
  const std::string& source_;
  const std::string& note_;
  const int signals_;
  View view_;
  Surroundings around_;
  KeyReader keys_;
  Terminal terminal_;
  bool ended_ = false;
};

}  // namespace

UniqueFd take_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Status run_live(const Feed& feed, const std::string& source, const std::string& note, int signals) {
  return LiveTable(feed, source, note, signals).run();
}

}  // namespace gpuledger::app::top
