// SPDX-License-Identifier: Apache-2.0
#include "identity/process_watch.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace gpuledger::identity {

// The rest is reported by the next call.
constexpr int kMostAtOnce = 1024;

ProcessWatch::~ProcessWatch() {
  for (const auto& [pid, descriptor] : descriptors_) ::close(descriptor);
  if (waiting_ >= 0) ::close(waiting_);
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : most_(other.most_),
      waiting_(std::exchange(other.waiting_, -1)),
      descriptors_(std::exchange(other.descriptors_, {})) {}

bool ProcessWatch::add(Pid pid) {
  remove(pid);
  if (descriptors_.size() >= most_) return false;
  if (waiting_ < 0) waiting_ = ::epoll_create1(EPOLL_CLOEXEC);
  const long opened = ::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0);  // close-on-exec by itself
  if (opened < 0) return false;  // exited, too many files, or an old kernel
  const int descriptor = static_cast<int>(opened);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = pid;
  if (::epoll_ctl(waiting_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    ::close(descriptor);
    return false;
  }
  descriptors_[pid] = descriptor;
  return true;
}

void ProcessWatch::remove(Pid pid) {
  const auto it = descriptors_.find(pid);
  if (it == descriptors_.end()) return;
  ::epoll_ctl(waiting_, EPOLL_CTL_DEL, it->second, nullptr);
  ::close(it->second);
  descriptors_.erase(it);
}

std::vector<Pid> ProcessWatch::ended() const {
  std::vector<Pid> ended;
  if (descriptors_.empty()) return ended;
  std::array<epoll_event, kMostAtOnce> events;
  const int count = ::epoll_wait(waiting_, events.data(), kMostAtOnce, 0);
  for (int i = 0; i < count; ++i) ended.push_back(events[static_cast<size_t>(i)].data.u32);
  return ended;
}

}  // namespace gpuledger::identity
