// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "app/runtime/pipeline.h"
#include "support/manual_clock.h"

namespace gpuledger {

// The whole program except its sockets, on a simulated node in virtual time, which begins with 2026. One per process:
// the simulator reads its scenario from the environment.
class VirtualNode {
 public:
  // `library` is the simulator. The error is one line.
  static Result<std::unique_ptr<VirtualNode>> start(const std::string& library, const std::string& scenario,
                                                    const std::vector<std::string>& pod_labels);
  ~VirtualNode();
  VirtualNode(const VirtualNode&) = delete;
  VirtualNode& operator=(const VirtualNode&) = delete;

  // One cycle at this second.
  std::shared_ptr<const Snapshot> run_cycle(int64_t second);

 private:
  VirtualNode() = default;
  Status open(const std::string& library, const std::vector<std::string>& pod_labels);

  std::string root_;
  void (*set_time_)(double) = nullptr;
  static constexpr Nanoseconds kStart = std::chrono::seconds(1'767'225'600);
  ManualClock clock_{Nanoseconds(0), kStart};
  std::unique_ptr<app::Pipeline> pipeline_;
};

}  // namespace gpuledger
