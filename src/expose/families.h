// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "expose/catalog.h"

// The contents of /metrics, for every format.
namespace gpuledger::expose {

// Leaves out what is over --max-series: see keep_biggest(). Gives about as many bytes as the rest takes as text.
size_t limit(View& view, std::span<const Family> families = catalog());

// The families of the collectors that are on, one after the other.
void write_families(const View& view, FamilySink& sink, std::span<const Family> families = catalog());

}  // namespace gpuledger::expose
