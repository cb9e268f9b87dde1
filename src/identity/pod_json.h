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

// A name for labels: clean_text(), within the length limit of Kubernetes.
std::string bounded_name(std::string_view text);
// A uid or another id. Empty if it has more than printable ASCII or is longer than a name: cleaned or cut, it could
// become another one.
std::string bounded_id(std::string_view text);
// A static pod's hash from its annotation. Empty if it is none: a tenant may write another pod's uid there.
std::string parse_manifest_hash(std::string_view annotation);
// Adds what a container asks for, if it is an extended resource: "nvidia.com/gpu" and "2".
void add_request(std::string_view container, std::string_view resource, std::string_view count, Pod& pod);
// Adds a container of a pod's status, by "containerd://<id>", unless it has no id yet.
void add_container(std::string_view name, std::string_view id_with_scheme, Pod& pod);

}  // namespace gpuledger::identity
