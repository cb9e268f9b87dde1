// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lives.h"
#include "scenario.h"

// The answers of the simulated node's daemons, for the processes that run now and for pods that have a GPU but no
// process on it.
namespace gpuledger::sim {

std::string pod_list_text(const Scenario& scenario, const std::vector<Life>& lives, Millis now);
// The kubelet's pod-resources List in protobuf's JSON form, and the ids of all allocatable devices. A GPU on which
// several pods have processes is offered in replicas, as time-slicing does.
std::string pod_resources_text(const Scenario& scenario, const std::vector<Life>& lives, Millis now);
std::string docker_list_text(const std::vector<Life>& lives);

}  // namespace gpuledger::sim
