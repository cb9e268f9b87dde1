// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "app/runtime/carried_simulator.h"
#include "base/file.h"
#include "base/result.h"

namespace gpuledger::app {

// A simulated node: the simulator's libnvidia-ml, loaded the same way as NVIDIA's, and a folder with the /proc of its
// processes and the answers of the node's daemons. The destructor removes the folder; folders of killed programs are
// removed at the next start.
class SimNode {
 public:
  // scenario: empty for the built-in one. library: empty: what the program carries, else beside the program.
  static Result<std::unique_ptr<SimNode>> prepare(const std::string& scenario, const std::string& library,
                                                  std::string_view carried = carried_simulator());
  ~SimNode();
  SimNode(const SimNode&) = delete;
  SimNode& operator=(const SimNode&) = delete;

  const std::string& library() const { return library_; }
  std::string proc_root() const { return root_ + "/proc"; }
  std::string pod_list() const { return root_ + "/kubelet/pods.json"; }
  std::string pod_resources() const { return root_ + "/kubelet/pod-resources.json"; }
  std::string slurm_jobs() const { return root_ + "/slurm"; }
  std::string docker_list() const { return root_ + "/docker/containers.json"; }
  // Why the simulator refused its scenario; empty if it did not.
  std::string scenario_error() const;

 private:
  SimNode(std::string library, UniqueFd file, std::string root)
      : library_(std::move(library)), file_(std::move(file)), root_(std::move(root)) {}

  std::string library_;
  UniqueFd file_;  // keeps the path of a carried library valid, for a driver that is closed and opened again
  std::string root_;
};

}  // namespace gpuledger::app
