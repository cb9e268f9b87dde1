// SPDX-License-Identifier: Apache-2.0
#include "expose/upstream_split.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "expose/numbers.h"

namespace gpuledger::expose {
namespace {

constexpr size_t kDecimals = 6;
constexpr uint64_t kMillion = 1'000'000;
constexpr uint64_t kMost = 1ull << 42;  // a million times this fits

std::optional<uint64_t> parse_whole(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > kMost) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_millionths(std::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const auto whole = parse_whole(text.substr(0, point));
  if (!whole) return std::nullopt;
  if (point == text.size()) return *whole * kMillion;
  std::string decimals(text.substr(point + 1));
  while (decimals.size() > kDecimals && decimals.back() == '0') decimals.pop_back();
  if (decimals.empty() || decimals.size() > kDecimals) return std::nullopt;
  decimals.resize(kDecimals, '0');
  const auto part = parse_whole(decimals);
  if (!part) return std::nullopt;
  return *whole * kMillion + *part;
}

// Each part is the rounded cumulative share minus the parts before it: the sum is the total.
std::vector<uint64_t> split(uint64_t total, const std::vector<uint64_t>& weights) {
  using Wide = unsigned __int128;
  const Wide sum = std::accumulate(weights.begin(), weights.end(), Wide{0});
  std::vector<uint64_t> parts;
  Wide before = 0;
  uint64_t given = 0;
  for (const uint64_t weight : weights) {
    before += weight;
    const auto due = static_cast<uint64_t>(Wide{total} * before / sum);
    parts.push_back(due - given);
    given = due;
  }
  return parts;
}

}  // namespace

std::optional<std::vector<std::string>> split_decimal(std::string_view number, const std::vector<uint64_t>& weights) {
  const auto total = parse_millionths(number);
  const bool weightless = std::all_of(weights.begin(), weights.end(), [](uint64_t weight) { return weight == 0; });
  if (!total || weightless) return std::nullopt;
  std::vector<std::string> texts;
  for (const uint64_t part : split(*total, weights)) {
    append_number(texts.emplace_back(), Energy::microjoules(static_cast<int64_t>(part)));  // six decimals, like this
  }
  return texts;
}

std::optional<WholeParts> split_whole(std::string_view number, const std::vector<uint64_t>& wanted) {
  // DCGM's newer exporter writes some whole numbers as doubles.
  const std::string_view whole = number.substr(0, number.find_last_not_of('0') + 1);
  const auto total = parse_whole(whole.ends_with('.') ? whole.substr(0, whole.size() - 1) : number);
  if (!total) return std::nullopt;
  const uint64_t sum = std::accumulate(wanted.begin(), wanted.end(), uint64_t{0});
  const std::vector<uint64_t> parts = sum <= *total ? wanted : split(*total, wanted);
  WholeParts texts;
  for (const uint64_t part : parts) append_number(texts.parts.emplace_back(), part);
  append_number(texts.rest, *total - std::min(sum, *total));
  return texts;
}

}  // namespace gpuledger::expose
