// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <vector>

namespace gpuledger::testing {

// Real processes of this machine that sleep while this object lives.
class Sleepers {
 public:
  explicit Sleepers(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::pause();
        ::_exit(0);
      }
      if (child > 0) pids_.push_back(child);
    }
  }
  ~Sleepers() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  }
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;

  const std::vector<pid_t>& pids() const { return pids_; }
  void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    std::erase(pids_, pid);  // the pid may be reused from now on
  }

 private:
  std::vector<pid_t> pids_;
};

}  // namespace gpuledger::testing
