// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node.h"

namespace gpuledger::sim {

// One field of nvmlDeviceGetFieldValues: the value of a healthy GPU of this model, or the scenario's. Other calls with
// the same value use this too, so that they agree.
nvml::Return read_field(Node& node, const Gpu& gpu, unsigned index, nvml::FieldValue* field);
// The same as a number, for the fields that count something.
nvml::Return read_count(Node& node, const Target& target, unsigned field, unsigned long long* out);

// NVLinks of this GPU to other GPUs: all of them if the node has another GPU of the model, else none.
unsigned active_nvlinks(const Node& node, const Gpu& gpu);

bool has_ecc(const GpuModel& model);
// Pages are retired up to Turing, rows remapped from Ampere on.
bool remaps_rows(const GpuModel& model);

}  // namespace gpuledger::sim
