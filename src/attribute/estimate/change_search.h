// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "attribute/estimate/explanation.h"

namespace gpuledger::attribute {

// What may have changed at the beginning of a window.
struct Change {
  std::optional<size_t> part;     // this process has another signature. Empty: the usual shares are others
  std::optional<SignatureId> to;  // one that it had before; empty: a new one
  double cost = 0;                // log odds against it
  double gain = 0;                // about what it would explain better, in log odds, minus its cost
};

// The most likely ones first. known: what was known before the window; prior: of a new signature; previous: the window
// before.
std::vector<Change> likely_changes(const Window& window, const Window& previous, const Explanation& known,
                                   const Belief& prior, const Constants& constants);

}  // namespace gpuledger::attribute
