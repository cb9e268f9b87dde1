// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/runtime/sim_node.h"
#include "base/result.h"
#include "identity/node_directory.h"

namespace gpuledger::app {

// Starts all sources of names that the settings and the node allow. sim: null on a real node. A source that does not
// answer is not an error; its health shows that. A source that can never be used is an error.
Result<identity::NodeDirectory> open_directory(const Config& config, const SimNode* sim);

// Its parts, to check each by itself.
bool kubernetes_is_wanted(const Config& config);
std::unique_ptr<identity::AllocationSource> open_allocations(const Config& config);
std::vector<std::unique_ptr<identity::ContainerSource>> open_containers(const Config& config);
// Without the start delay that spreads a rollout. An error: it can never be used. Not for kAuto; null for kNone.
Result<std::unique_ptr<identity::PodSource>> open_pod_source(const Config& config, PodSourceName name);
// Why the Pods API cannot be tried; empty: it can.
std::string why_no_pods_api(const Config& config);
std::string why_no_apiserver(const Config& config);

}  // namespace gpuledger::app
