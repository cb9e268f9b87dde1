// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"

namespace gpuledger::app {

// The process_* readings every Prometheus client library gives. What cannot be read stays zero.
SelfStats read_self_stats();

}  // namespace gpuledger::app
