// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "identity/pod_view.h"
#include "invariant.h"

namespace gpuledger::fuzz {

// What holds of a pod whoever told us of it.
inline void check_pod(const identity::Pod& pod) {
  constexpr size_t kLongest = 253;
  require(!pod.uid.empty() && !pod.name.empty(), "a pod has a uid and a name");
  require(pod.uid.size() <= kLongest && pod.name.size() <= kLongest && pod.name_space.size() <= kLongest,
          "names are bounded");
  require(pod.hami_devices.size() <= 64 << 10, "annotations are bounded");
  require(pod.manifest_hash.empty() || (pod.manifest_hash.size() == 32 &&
                                        pod.manifest_hash.find_first_not_of("0123456789abcdef") == std::string::npos),
          "a manifest's hash is an MD5 sum");
  require(pod.labels.size() <= 1 && (pod.labels.empty() || pod.labels.contains("team")),
          "no label but those asked for");
  for (const auto& [name, value] : pod.labels) require(value.size() <= kLongest, "labels are bounded");
  for (const identity::PodContainer& container : pod.containers)
    require(!container.id.empty() && container.id.size() <= kLongest && container.name.size() <= kLongest,
            "containers have bounded names");
}

}  // namespace gpuledger::fuzz
