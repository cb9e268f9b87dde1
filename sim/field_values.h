// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node.h"

namespace gpuledger::sim {

// One field of nvmlDeviceGetFieldValues: what a healthy GPU of its kind says, or the scenario's word. Calls that tell
// the same in another way read it here too, so that they agree.
nvml::Return read_field(Node& node, const Gpu& gpu, unsigned index, nvml::FieldValue* field);
// The same as a number, for the fields that count something.
nvml::Return read_count(Node& node, const Target& target, unsigned field, unsigned long long* out);

// Ends of NVLink on this GPU that lead to another: all, if the node has two of a kind; else none.
unsigned active_nvlinks(const Node& node, const Gpu& gpu);

bool has_ecc(const GpuModel& model);
// Pages are retired up to Turing, rows remapped from Ampere on.
bool remaps_rows(const GpuModel& model);

}  // namespace gpuledger::sim
