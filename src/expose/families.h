// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "expose/family_sink.h"
#include "expose/view.h"

// The contents of /metrics, for every format.
namespace gpuledger::expose {

// Leaves out what is over --max-series.
void limit(View& view);

// The families of the collectors that are on, one after the other.
void write_families(const View& view, FamilySink& sink);

}  // namespace gpuledger::expose
