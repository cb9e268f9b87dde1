#include "identity/process_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace gpuledger::identity {

ProcessWatch::~ProcessWatch() {
  for (const auto& [pid, descriptor] : descriptors_) ::close(descriptor);
}

ProcessWatch::ProcessWatch(ProcessWatch&& other) noexcept
    : most_(other.most_), descriptors_(std::exchange(other.descriptors_, {})) {}

bool ProcessWatch::add(Pid pid) {
  remove(pid);
  if (descriptors_.size() >= most_) return false;
  const long descriptor = ::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0);  // close-on-exec by itself
  if (descriptor < 0) return false;  // gone, too many open files, or an old kernel
  descriptors_[pid] = static_cast<int>(descriptor);
  return true;
}

void ProcessWatch::remove(Pid pid) {
  const auto it = descriptors_.find(pid);
  if (it == descriptors_.end()) return;
  ::close(it->second);
  descriptors_.erase(it);
}

std::vector<Pid> ProcessWatch::ended() const {
  std::vector<pollfd> polled;
  polled.reserve(descriptors_.size());
  for (const auto& [pid, descriptor] : descriptors_) polled.push_back({descriptor, POLLIN, 0});
  std::vector<Pid> ended;
  if (::poll(polled.data(), polled.size(), 0) <= 0) return ended;
  size_t i = 0;
  for (const auto& [pid, descriptor] : descriptors_) {
    if (polled[i++].revents != 0) ended.push_back(pid);
  }
  return ended;
}

}  // namespace gpuledger::identity
