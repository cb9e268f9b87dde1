// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "identity/pod_view.h"

namespace gpuledger::identity {

// The pods that a source has reported so far. One thread writes; any may read view(). Deleted pods stay for a while:
// processes are still exiting, and the last samples need names.
class PodStore {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr auto kKeepDeleted = std::chrono::minutes(5);
  static constexpr size_t kMostPods = 10'000;

  // False: the store is full, the pod is left out.
  bool put(Pod pod);
  void remove(const std::string& uid, Time now);
  // A complete list: pods missing from it were deleted. Returns how many did not fit.
  size_t replace_all(std::vector<Pod> pods, Time now);
  // Makes the changes visible.
  void publish(Time now);

  std::shared_ptr<const PodView> view() const;

 private:
  struct Kept {
    std::shared_ptr<const Pod> pod;
    std::optional<Time> deleted;
    void bury(Time now);
  };
  std::unordered_map<std::string, Kept> pods_;  // by uid; the writer's own

  mutable Mutex mutex_;
  std::shared_ptr<const PodView> view_ GL_GUARDED_BY(mutex_);
};

}  // namespace gpuledger::identity
