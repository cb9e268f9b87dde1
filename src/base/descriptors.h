// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gpuledger {

// How many open files this process may have.
size_t descriptor_limit();

// Raises it for a crowded node, as far as the hard limit allows: systemd and shells give 1,024. Never lowers it.
void raise_descriptor_limit();

}  // namespace gpuledger
