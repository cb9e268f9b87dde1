// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "expose/upstream_line.h"

namespace gpuledger::expose {

struct UpstreamSeries {
  std::vector<UpstreamLabel> labels;
  std::string value;  // unchanged
};

struct UpstreamFamily {
  std::string name;
  std::string type;  // "counter", "gauge"; everything else is "untyped"
  std::string help;  // without escapes
  std::vector<UpstreamSeries> series;
};

// Another exporter's text, checked line by line and grouped by family.
struct UpstreamText {
  std::vector<UpstreamFamily> families;  // in order of appearance; none is empty
  std::array<uint64_t, kLineFaults> faults{};
};

// Eight GPUs with 56 instances, a hundred fields each: 6,000 series, 90,000 labels, 3 MB.
inline constexpr size_t kLargestUpstream = 8 << 20;
inline constexpr size_t kMostUpstreamSeries = 20'000;
inline constexpr size_t kMostUpstreamLabels = 300'000;  // of all series together; each takes at least 64 bytes

// A wrong line is left out and counted. An error: the whole text is invalid. It ends within a line, is binary, is empty
// or is larger than any node's.
// The first exporter wrote its lines by GPU, with HELP and TYPE before those of the first; the format requires all
// lines of a family together.
Result<UpstreamText> parse_upstream(std::string_view text);

}  // namespace gpuledger::expose
