// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>

namespace gpuledger::task {

// What a hanging call waits for. Shared, as everything is that a thread left behind touches.
class Gate {
 public:
  void pass() const { opened_.wait(); }
  void open() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

}  // namespace gpuledger::task
