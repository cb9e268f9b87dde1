// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Divides a window's joules among its processes, with errors, by what is known of their signatures.
void divide(Window& window, const Posterior& posterior, const Constants& constants);

}  // namespace gpuledger::attribute
