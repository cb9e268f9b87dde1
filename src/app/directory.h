#pragma once

#include "app/config.h"
#include "app/sim_node.h"
#include "identity/node_directory.h"

namespace gpuledger::app {

// Starts whatever can name a process on this node, as the settings and the node allow. sim: null on a real node.
identity::NodeDirectory open_directory(const Config& config, const SimNode* sim);

}  // namespace gpuledger::app
