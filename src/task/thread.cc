// SPDX-License-Identifier: Apache-2.0
#include "task/thread.h"

#include <system_error>
#include <utility>

namespace gpuledger::task {

Status Thread::start(Body body) {
  try {
    thread_ = std::jthread(std::move(body));
  } catch (const std::system_error& refused) {
    return Error{Code::kUnavailable,
                 "no thread can be made (" + refused.code().message() +
                     "): the limit of the user (ulimit -u), the cgroup (pids.max) or the system is reached"};
  }
  return ok_status();
}

}  // namespace gpuledger::task
