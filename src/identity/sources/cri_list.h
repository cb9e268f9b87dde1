// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "identity/pod_source.h"

namespace gpuledger::proto::cri {
class Container;
class Sandbox;
}  // namespace gpuledger::proto::cri

namespace gpuledger::identity {

// Makes pods from a container runtime's lists: first sandboxes, then containers.
class CriList {
 public:
  static constexpr size_t kMostContainers = 20'000;

  explicit CriList(const PodLabelList& labels) : labels_(labels) {}

  void add(const proto::cri::Sandbox& sandbox);
  void add(const proto::cri::Container& container);

  // Sandboxes without a name.
  uint64_t malformed() const { return malformed_; }
  // Pods beyond the limit for one node.
  uint64_t left_out() const { return left_out_; }
  std::vector<Pod> take() { return std::move(pods_); }

 private:
  const PodLabelList& labels_;
  std::vector<Pod> pods_;
  std::unordered_map<std::string, size_t> by_uid_;
  std::unordered_map<std::string, size_t> by_sandbox_;
  size_t containers_ = 0;
  uint64_t malformed_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace gpuledger::identity
