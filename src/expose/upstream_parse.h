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
  std::string value;  // as it was written
};

struct UpstreamFamily {
  std::string name;
  std::string type;  // "counter", "gauge"; everything else is "untyped"
  std::string help;  // without escapes
  std::vector<UpstreamSeries> series;
};

// What another exporter says, line by line checked and put together by family.
struct UpstreamText {
  std::vector<UpstreamFamily> families;  // in the order they came; none is empty
  std::array<uint64_t, kLineFaults> faults{};
};

// Eight GPUs cut into 56 instances, a hundred fields each: 6,000 series, 90,000 labels, 3 MB.
inline constexpr size_t kLargestUpstream = 8 << 20;
inline constexpr size_t kMostUpstreamSeries = 20'000;
inline constexpr size_t kMostUpstreamLabels = 300'000;  // of all series together; each takes 64 bytes and more

// A line that is wrong is left out and counted. An error: the text as a whole is not to be trusted. It ends within a
// line, is no text, has nothing in it or more than any node has.
// The first exporter wrote its lines by GPU, with HELP and TYPE before those of the first; the format wants every
// family in one piece.
Result<UpstreamText> parse_upstream(std::string_view text);

}  // namespace gpuledger::expose
