// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/split.h"

#include <cassert>

#include "base/split.h"

namespace gpuledger::attribute {

std::vector<Energy> split_exactly(Energy total, std::span<const uint64_t> weights) {
  assert(total >= Energy());
  std::vector<Energy> parts;
  parts.reserve(weights.size());
  for (uint64_t part : gpuledger::split_exactly(static_cast<uint64_t>(total.microjoules()), weights)) {
    parts.push_back(Energy::microjoules(static_cast<int64_t>(part)));
  }
  return parts;
}

}  // namespace gpuledger::attribute
