// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "identity/pod_json.h"
#include "identity/sources/json_stream.h"

namespace gpuledger::identity {

// A v1.PodList that is read as it comes: of every pod only what labels need stays in memory.
class PodListStream {
 public:
  // only_node: pods that say they run elsewhere are left out; empty: take all.
  PodListStream(const PodLabelList& labels, std::string only_node);

  Status feed(std::string_view bytes) { return stream_.feed(bytes); }
  // Once everything has been fed.
  Result<PodList> finish();

  // Pods that were left out: too large, no pods, or more than fit. Those of other nodes do not count.
  uint64_t left_out() const { return left_out_ + stream_.skipped(); }

 private:
  void add(std::string_view item);

  const PodLabelList& labels_;
  const std::string only_node_;
  JsonStream stream_;
  PodList list_;
  uint64_t left_out_ = 0;
};

// Where a pod was put; empty: nowhere yet.
std::string node_of(const nlohmann::json& pod);

}  // namespace gpuledger::identity
