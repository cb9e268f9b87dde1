// SPDX-License-Identifier: Apache-2.0
#include "base/split.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace gpuledger {

std::vector<uint64_t> split_exactly(uint64_t total, std::span<const uint64_t> weights) {
  assert(!weights.empty());
  __extension__ using Wide = unsigned __int128;  // for products of two 64-bit numbers
  Wide sum = 0;
  for (uint64_t weight : weights) sum += weight;
  const bool equal = sum == 0;
  if (equal) sum = weights.size();

  std::vector<uint64_t> parts(weights.size());
  std::vector<Wide> remainders(weights.size());
  uint64_t left = total;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Wide product = Wide{total} * (equal ? 1 : weights[i]);
    parts[i] = static_cast<uint64_t>(product / sum);
    remainders[i] = product % sum;
    left -= parts[i];
  }
  if (left == 0) return parts;

  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (size_t i = 0; left > 0; ++i, --left) ++parts[order[i]];
  return parts;
}

}  // namespace gpuledger
