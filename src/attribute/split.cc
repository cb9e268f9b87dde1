#include "attribute/split.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace gpuledger::attribute {

std::vector<Energy> split_exactly(Energy total, std::span<const uint64_t> weights) {
  assert(!weights.empty() && total >= Energy());
  __extension__ using Wide = unsigned __int128;
  Wide sum = 0;
  for (uint64_t weight : weights) sum += weight;
  const bool equal = sum == 0;
  if (equal) sum = weights.size();

  const Wide whole = static_cast<Wide>(total.microjoules());
  std::vector<Energy> parts(weights.size());
  std::vector<Wide> remainders(weights.size());
  int64_t left = total.microjoules();
  for (size_t i = 0; i < weights.size(); ++i) {
    // whole < 2^63 and a weight < 2^64, so the product fits 128 bits.
    const Wide product = whole * (equal ? 1 : weights[i]);
    const Wide part = product / sum;
    parts[i] = Energy::microjoules(static_cast<int64_t>(part));
    remainders[i] = product - part * sum;
    left -= parts[i].microjoules();
  }
  if (left == 0) return parts;

  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (size_t i = 0; left > 0; ++i, --left) parts[order[i]] += Energy::microjoules(1);
  return parts;
}

}  // namespace gpuledger::attribute
