// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace gpuledger {

// Waits until the condition holds. The limit only ends a test that would hang.
inline bool eventually(const std::function<bool()>& condition, std::chrono::seconds limit = std::chrono::minutes(5)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace gpuledger
