// SPDX-License-Identifier: Apache-2.0
#include "app/push/snapshot_packer.h"

#include <snappy.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <vector>

namespace gpuledger::app {
namespace {

std::vector<expose::WireSeries> markers(std::unordered_set<std::string> ended) {
  std::vector<expose::WireSeries> series;
  series.reserve(ended.size());
  while (!ended.empty()) { series.push_back({std::move(ended.extract(ended.begin()).value()), expose::kStaleMarker}); }
  return series;
}

std::optional<PushBlock> make_block(const std::vector<expose::WireSeries>& series, int64_t at_ms) {
  if (series.empty()) return std::nullopt;
  const std::string request = expose::write_request(series, at_ms);
  PushBlock block{at_ms, series.size(), {}};
  snappy::Compress(request.data(), request.size(), &block.body);
  return block;
}

}  // namespace

std::optional<PushBlock> SnapshotPacker::pack(const Cycle& cycle, const expose::ExposeOptions& options) {
  const int64_t at_ms = std::chrono::duration_cast<std::chrono::milliseconds>(cycle.batch.at.wall).count();
  if (at_ms == last_ms_) return std::nullopt;
  last_ms_ = at_ms;
  auto series = expose::remote_write_series(cycle, options, labels_);
  auto ended = std::exchange(known_, {});
  for (const expose::WireSeries& each : series) {
    ended.erase(each.labels);
    known_.insert(each.labels);
  }
  std::ranges::move(markers(std::move(ended)), std::back_inserter(series));
  return make_block(series, at_ms);
}

std::optional<PushBlock> SnapshotPacker::end() {
  return make_block(markers(std::exchange(known_, {})), last_ms_ + 1);
}

}  // namespace gpuledger::app
