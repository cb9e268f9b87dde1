#pragma once

#include "app/config.h"
#include "app/sim_node.h"
#include "base/result.h"
#include "identity/node_directory.h"

namespace gpuledger::app {

// Starts whatever can name a process on this node, as the settings and the node allow. sim: null on a real node.
// A source that does not answer is no error, it says so in its health; one that could never be asked is.
Result<identity::NodeDirectory> open_directory(const Config& config, const SimNode* sim);

}  // namespace gpuledger::app
