// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/identity.h"

namespace gpuledger::identity {

inline constexpr size_t kLongestAnnotation = 64 << 10;  // of one that is kept

struct PodContainer {
  std::string id;  // without the runtime's "containerd://"
  std::string name;
};

// The pod fields that labels need. Specs and environments are not kept.
struct Pod {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string manifest_hash;  // static pods: used in cgroup names in place of the uid
  bool finished = false;      // Succeeded or Failed: it holds no GPU, even if still listed
  std::vector<PodContainer> containers;
  std::map<std::string, std::string> labels;  // only those of --pod-labels
  std::string hami_devices;                   // HAMi's annotation: the GPUs really given
  std::vector<GpuRequest> requests;           // of extended resources (with a '/'), not only GPUs
};

// The pods of this node at one moment. Immutable once made, so any thread may read it.
class PodView {
 public:
  struct Found {
    const Pod* pod = nullptr;
    const PodContainer* container = nullptr;
  };

  PodView() = default;
  explicit PodView(std::vector<std::shared_ptr<const Pod>> pods);
  // The maps point into pods_.
  PodView(const PodView&) = delete;
  PodView& operator=(const PodView&) = delete;

  const std::vector<std::shared_ptr<const Pod>>& pods() const { return pods_; }
  const Pod* by_uid(std::string_view uid) const;  // a static pod also by its manifest hash
  Found by_container_id(std::string_view id) const;
  const Pod* by_name(std::string_view name_space, std::string_view name) const;

 private:
  std::vector<std::shared_ptr<const Pod>> pods_;
  std::unordered_map<std::string_view, const Pod*> by_uid_;
  std::unordered_map<std::string_view, const Pod*> by_hash_;  // null: claimed by several
  std::unordered_map<std::string_view, Found> by_container_id_;
  std::map<std::pair<std::string_view, std::string_view>, const Pod*> by_name_;
};

}  // namespace gpuledger::identity
