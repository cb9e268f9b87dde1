// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "identity/pod_source.h"

namespace gpuledger::identity {

// A v1.Pod in Kubernetes' protobuf. Empty: not a pod, or without uid or name.
std::optional<Pod> parse_pod_proto(std::string_view bytes, const PodLabelList& labels);

}  // namespace gpuledger::identity
