// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <thread>

#include "base/result.h"

namespace gpuledger::task {

// A thread that its destructor tells to stop and waits for.
//
// All threads of this program are made here, because making one may fail at any time: a fork bomb fills the limit of
// processes of a user, a cgroup or a node for everybody in it.
class Thread {
 public:
  using Body = std::function<void(const std::stop_token&)>;

  // Once. Error: no thread can be made now; it can be called again.
  Status start(Body body);
  bool running() const { return thread_.joinable(); }  // until it is joined or left
  void request_stop() { thread_.request_stop(); }
  void join() { thread_.join(); }
  void detach() { thread_.detach(); }

 private:
  std::jthread thread_;
};

}  // namespace gpuledger::task
