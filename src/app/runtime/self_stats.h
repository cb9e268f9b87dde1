// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/snapshot.h"

namespace gpuledger::app {

// The process_* values of every Prometheus client library. Unreadable values stay zero.
SelfStats read_self_stats();

}  // namespace gpuledger::app
