// SPDX-License-Identifier: Apache-2.0
#include "app/bill/sharing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuledger::app {

std::vector<int64_t> share_out(int64_t amount, const std::vector<double>& weights) {
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> parts;
  int64_t left = amount;
  for (const double weight : weights) {
    // The division first: the amount times a weight would lose digits.
    parts.push_back(static_cast<int64_t>(std::floor(static_cast<long double>(amount) * (weight / all))));
    left -= parts.back();
  }
  std::vector<size_t> by_weight;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) by_weight.push_back(i);
  }
  std::stable_sort(by_weight.begin(), by_weight.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  // Fewer than there are parts, or a few more for very large amounts.
  const auto count = static_cast<int64_t>(by_weight.size());
  const int64_t each = left / count;
  for (const size_t i : by_weight) parts[i] += each;
  left -= each * count;
  for (const size_t i : by_weight) {
    if (left == 0) break;
    const int64_t one = left > 0 ? 1 : -1;
    parts[i] += one;
    left -= one;
  }
  return parts;
}

std::vector<int64_t> round_parts(const std::vector<Wide>& parts, int64_t unit, int64_t total) {
  std::vector<int64_t> rounded;
  std::vector<std::pair<int64_t, size_t>> remainders;
  int64_t left = total;
  for (size_t i = 0; i < parts.size(); ++i) {
    Wide whole = parts[i] / unit;
    if (parts[i] % unit < 0) --whole;
    rounded.push_back(static_cast<int64_t>(whole));
    const auto remainder = static_cast<int64_t>(parts[i] - whole * unit);
    if (remainder != 0) remainders.emplace_back(-remainder, i);
    left -= rounded.back();
  }
  std::sort(remainders.begin(), remainders.end());
  for (const auto& [remainder, i] : remainders) {
    if (left <= 0) break;
    ++rounded[i];
    --left;
  }
  if (left != 0 && !parts.empty()) {
    rounded[static_cast<size_t>(std::max_element(parts.begin(), parts.end()) - parts.begin())] += left;
  }
  return rounded;
}

}  // namespace gpuledger::app
