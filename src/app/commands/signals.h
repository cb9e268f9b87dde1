// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <csignal>
#include <initializer_list>

#include "base/log.h"
#include "base/result.h"

// For commands that serve until they are told to end.
namespace gpuledger::app {

// Blocked in all later threads, so that only wait_for_signal gets them.
inline sigset_t block_signals(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return set;
}

inline int wait_for_signal(const sigset_t& set) {
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {}
  return signal;
}

inline void log_web_config(const Status& status) {
  if (status.ok()) {
    log_info("web config read again");
  } else {
    log_error("web config kept as it was", {{"error", status.error().message}});
  }
}

}  // namespace gpuledger::app
