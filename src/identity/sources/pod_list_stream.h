// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "identity/pod_json.h"
#include "identity/sources/json_stream.h"

namespace gpuledger::identity {

// A v1.PodList parsed while it arrives: only the fields that labels need stay in memory.
class PodListStream {
 public:
  // only_node: pods of other nodes are left out; empty: take all.
  PodListStream(const PodLabelList& labels, std::string only_node);

  Status feed(std::string_view bytes) { return stream_.feed(bytes); }
  // Call after the last feed.
  Result<PodList> finish();

  // Pods left out: too large, not a pod, or beyond the limit. Pods of other nodes do not count.
  uint64_t left_out() const { return left_out_ + stream_.skipped(); }

 private:
  void add(std::string_view item);

  const PodLabelList& labels_;
  const std::string only_node_;
  JsonStream stream_;
  PodList list_;
  uint64_t left_out_ = 0;
};

// A pod's node; empty: not scheduled.
std::string node_of(const nlohmann::json& pod);

}  // namespace gpuledger::identity
