// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "identity/pod_source.h"

namespace gpuledger::identity {

// A v1.Pod in JSON. Empty if the uid or the name is missing.
std::optional<Pod> parse_pod(const nlohmann::json& object, const PodLabelList& labels);

struct PodList {
  std::vector<Pod> pods;
  std::string resource_version;
};
// A v1.PodList in JSON, from a kubelet's /pods or the API server's list.
Result<PodList> parse_pod_list(std::string_view json, const PodLabelList& labels);

// A name cut to the length limit of Kubernetes.
std::string bounded_name(std::string_view text);
// Adds what a container asks for, if it is an extended resource: "nvidia.com/gpu" and "2".
void add_request(std::string_view container, std::string_view resource, std::string_view count, Pod& pod);
// "containerd://<id>" to "<id>"; empty if there is no id yet.
std::string bare_container_id(std::string_view with_scheme);

}  // namespace gpuledger::identity
