// SPDX-License-Identifier: Apache-2.0
#include "identity/pod_store.h"

#include <algorithm>
#include <unordered_set>

namespace gpuledger::identity {

bool PodStore::put(Pod pod) {
  const auto known = pods_.find(pod.uid);
  if (known == pods_.end() && pods_.size() >= kMostPods) return false;
  std::string uid = pod.uid;
  pods_[std::move(uid)] = {std::make_shared<const Pod>(std::move(pod)), std::nullopt};
  return true;
}

void PodStore::remove(const std::string& uid, Time now) {
  const auto known = pods_.find(uid);
  if (known != pods_.end()) known->second.bury(now);
}

void PodStore::Kept::bury(Time now) {
  if (deleted) return;
  deleted = now;
  Pod last = *pod;
  last.finished = true;
  pod = std::make_shared<const Pod>(std::move(last));
}

size_t PodStore::replace_all(std::vector<Pod> pods, Time now) {
  std::unordered_set<std::string> listed;
  for (const Pod& pod : pods) listed.insert(pod.uid);
  for (auto& [uid, kept] : pods_) {
    if (!listed.contains(uid)) kept.bury(now);
  }
  size_t left_out = 0;
  for (Pod& pod : pods) left_out += put(std::move(pod)) ? 0 : 1;
  return left_out;
}

void PodStore::publish(Time now) {
  std::erase_if(pods_,
                [&](const auto& entry) { return entry.second.deleted && now - *entry.second.deleted > kKeepDeleted; });
  std::vector<std::shared_ptr<const Pod>> pods;
  pods.reserve(pods_.size());
  // Deleted pods first: if two have one name or id, the later one wins in a view.
  for (const auto& [uid, kept] : pods_) {
    if (kept.deleted) pods.push_back(kept.pod);
  }
  for (const auto& [uid, kept] : pods_) {
    if (!kept.deleted) pods.push_back(kept.pod);
  }
  auto view = std::make_shared<const PodView>(std::move(pods));
  const MutexLock lock(mutex_);
  view_ = std::move(view);
}

std::shared_ptr<const PodView> PodStore::view() const {
  const MutexLock lock(mutex_);
  return view_;
}

}  // namespace gpuledger::identity
