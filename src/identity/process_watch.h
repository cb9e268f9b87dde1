// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/ids.h"

namespace gpuledger::identity {

// Reports which processes have exited with one system call, whose cost does not depend on their number: a thousand
// reads of /proc every second would cost more than the rest of the program. Needs Linux 5.3 and pids of our own pid
// namespace (pidfd_open knows no other); other processes are looked up in /proc. Each watched process takes a
// descriptor.
class ProcessWatch {
 public:
  // most: 0 if the pids are not of our own pid namespace.
  explicit ProcessWatch(size_t most) : most_(most) {}
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) = delete;

  // Call before the process is identified: the process that has the pid now is watched, so a pid reused meanwhile is
  // reported as ended. False: cannot be watched.
  bool add(Pid pid);
  void remove(Pid pid);
  std::vector<Pid> ended() const;

 private:
  size_t most_;
  int waiting_ = -1;  // epoll of all pidfds
  std::map<Pid, int> descriptors_;
};

}  // namespace gpuledger::identity
