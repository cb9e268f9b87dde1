// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/ids.h"

namespace gpuledger::identity {

// Tells which processes have ended, for all of them in one system call that costs the same however many they are: a
// thousand looks into /proc every second would cost more than everything else the program does. Works where pids of
// /proc are pids of ours (pidfd_open knows no other pid namespace) and from Linux 5.3 on; whoever cannot be watched is
// looked up in /proc instead. Each watched one takes a descriptor.
class ProcessWatch {
 public:
  // most: 0 where the pids do not come from our own pid namespace.
  explicit ProcessWatch(size_t most) : most_(most) {}
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) = delete;

  // Call before the process is identified: whoever has the pid now is watched, so that a pid that changes hands
  // meanwhile shows as ended. False: cannot be watched.
  bool add(Pid pid);
  void remove(Pid pid);
  std::vector<Pid> ended() const;

 private:
  size_t most_;
  int waiting_ = -1;  // an epoll of all of them
  std::map<Pid, int> descriptors_;
};

}  // namespace gpuledger::identity
