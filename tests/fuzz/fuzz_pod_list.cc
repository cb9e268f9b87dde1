// SPDX-License-Identifier: Apache-2.0
// What must hold of a list of pods whatever the kubelet or the API server, or somebody in their place, says: read as it
// comes, in pieces, it gives the pods it gives as a whole, and no name is longer than names are.

#include <algorithm>
#include <cstdint>
#include <string>

#include "identity/pod_json.h"
#include "identity/sources/pod_list_stream.h"
#include "pod_invariant.h"

using namespace gpuledger::identity;
using gpuledger::fuzz::check_pod;
using gpuledger::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const size_t piece = 1 + bytes[0] % 64;
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  const PodLabelList labels = {"team"};

  PodListStream stream(labels, "");
  bool fed = true;
  for (size_t at = 0; at < text.size() && fed; at += piece) fed = stream.feed(text.substr(at, piece)).ok();
  const auto list = stream.finish();
  if (fed && list) {
    require(list->pods.size() <= text.size(), "pods from nowhere");
    for (const Pod& pod : list->pods) check_pod(pod);
  }
  const auto whole = parse_pod_list(text, labels);
  if (!whole) return 0;
  for (const Pod& pod : whole->pods) check_pod(pod);
  if (fed && list && stream.left_out() == 0) {
    require(list->pods.size() == whole->pods.size(), "as many pods in pieces as in one");
    for (size_t i = 0; i < whole->pods.size(); ++i) require(list->pods[i].uid == whole->pods[i].uid, "the same pods");
  }
  return 0;
}
