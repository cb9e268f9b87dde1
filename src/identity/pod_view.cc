// SPDX-License-Identifier: Apache-2.0
#include "identity/pod_view.h"

namespace gpuledger::identity {

PodView::PodView(std::vector<std::shared_ptr<const Pod>> pods) : pods_(std::move(pods)) {
  by_uid_.reserve(pods_.size());
  by_container_id_.reserve(pods_.size() * 2);
  for (const auto& pod : pods_) {
    by_uid_[pod->uid] = pod.get();
    // Any tenant may write an annotation: a hash that two pods claim names neither.
    if (!pod->manifest_hash.empty()) {
      const Pod*& known = by_hash_.try_emplace(pod->manifest_hash, pod.get()).first->second;
      const bool same = known && known->name_space == pod->name_space && known->name == pod->name;
      known = same ? pod.get() : nullptr;
    }
    by_name_[{pod->name_space, pod->name}] = pod.get();
    for (const PodContainer& container : pod->containers) {
      if (!container.id.empty()) by_container_id_[container.id] = {pod.get(), &container};
    }
  }
}

const Pod* PodView::by_uid(std::string_view uid) const {
  if (const auto it = by_uid_.find(uid); it != by_uid_.end()) return it->second;
  const auto it = by_hash_.find(uid);
  return it == by_hash_.end() ? nullptr : it->second;
}

PodView::Found PodView::by_container_id(std::string_view id) const {
  const auto it = by_container_id_.find(id);
  return it == by_container_id_.end() ? Found{} : it->second;
}

const Pod* PodView::by_name(std::string_view name_space, std::string_view name) const {
  // Of two pods with one name the running one is wanted; a store lists it last.
  const auto it = by_name_.find({name_space, name});
  return it == by_name_.end() ? nullptr : it->second;
}

}  // namespace gpuledger::identity
