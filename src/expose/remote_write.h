// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "expose/expose.h"

// /metrics as the messages of Prometheus' remote write 1.0.
namespace gpuledger::expose {

struct WireSeries {
  // The name and the labels, sorted, as the fields of a TimeSeries: the same series has the same bytes.
  std::string labels;
  uint64_t value = 0;  // the bits of the double, because those of a stale marker must not change
};

// What Prometheus stores when a series has ended: a NaN with these bits.
inline constexpr uint64_t kStaleMarker = 0x7ff0000000000002;

using ExtraLabels = std::vector<std::pair<std::string, std::string>>;

// The same names, labels and values as write_text. A series' own label has precedence over an extra one.
std::vector<WireSeries> remote_write_series(const Cycle& cycle, const ExposeOptions& options, const ExtraLabels& extra);

// A WriteRequest with one sample of each series, not compressed.
std::string write_request(std::span<const WireSeries> series, int64_t at_ms);

}  // namespace gpuledger::expose
