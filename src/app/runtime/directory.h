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

// Starts whatever can name a process on this node, as the settings and the node allow. sim: null on a real node.
// A source that does not answer is no error, it says so in its health; one that could never be asked is.
Result<identity::NodeDirectory> open_directory(const Config& config, const SimNode* sim);

// The parts of it, for who wants to look at each by itself.
bool kubernetes_is_wanted(const Config& config);
std::unique_ptr<identity::AllocationSource> open_allocations(const Config& config);
std::vector<std::unique_ptr<identity::ContainerSource>> open_containers(const Config& config);
// At once, without the delay that spreads a rollout. An error: it could never be asked. Not for kAuto; null for kNone.
Result<std::unique_ptr<identity::PodSource>> open_pod_source(const Config& config, PodSourceName name);
// What is missing on this node to even try; empty: nothing.
std::string why_no_pods_api(const Config& config);
std::string why_no_apiserver(const Config& config);

}  // namespace gpuledger::app
