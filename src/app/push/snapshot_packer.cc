// SPDX-License-Identifier: Apache-2.0
#include "app/push/snapshot_packer.h"

#include <snappy.h>

#include <algorithm>
#include <chrono>
#include <span>

namespace gpuledger::app {
namespace {

std::vector<expose::WireSeries> markers(std::unordered_set<std::string> ended) {
  std::vector<expose::WireSeries> series;
  series.reserve(ended.size());
  while (!ended.empty()) { series.push_back({std::move(ended.extract(ended.begin()).value()), expose::kStaleMarker}); }
  return series;
}

}  // namespace

std::vector<PushBlock> SnapshotPacker::make_blocks(const std::vector<expose::WireSeries>& series, int64_t at_ms) const {
  std::vector<PushBlock> blocks;
  for (size_t first = 0; first < series.size(); first += most_) {
    const auto part = std::span(series).subspan(first, std::min(most_, series.size() - first));
    const std::string request = expose::write_request(part, at_ms);
    PushBlock& block = blocks.emplace_back(PushBlock{at_ms, part.size(), {}});
    snappy::Compress(request.data(), request.size(), &block.body);
  }
  return blocks;
}

std::vector<PushBlock> SnapshotPacker::pack(const Cycle& cycle, const expose::ExposeOptions& options) {
  const int64_t at_ms = std::chrono::duration_cast<std::chrono::milliseconds>(cycle.batch.at.wall).count();
  if (at_ms == last_ms_) return {};
  last_ms_ = at_ms;
  auto series = expose::remote_write_series(cycle, options, labels_);
  auto ended = std::exchange(known_, {});
  for (const expose::WireSeries& each : series) {
    ended.erase(each.labels);
    known_.insert(each.labels);
  }
  std::ranges::move(markers(std::move(ended)), std::back_inserter(series));
  return make_blocks(series, at_ms);
}

std::vector<PushBlock> SnapshotPacker::end() {
  return make_blocks(markers(std::exchange(known_, {})), last_ms_ + 1);
}

}  // namespace gpuledger::app
