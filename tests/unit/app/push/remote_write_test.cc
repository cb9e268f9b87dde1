// SPDX-License-Identifier: Apache-2.0
#include "expose/remote_write.h"

#include <gtest/gtest.h>

#include "app/push/snapshot_packer.h"
#include "received.h"
#include "unit/expose/exposition_parser.h"
#include "unit/expose/node_example.h"

namespace gpuledger::app {
namespace {

using expose::example_options;
using expose::node_example;
using std::chrono::milliseconds;

constexpr int64_t kSentAt = 1'700'000'000'123;

Cycle cycle_at(int64_t at_ms) {
  Cycle cycle = node_example();
  cycle.batch.at.wall = milliseconds(at_ms);
  return cycle;
}

Received read(const std::optional<PushBlock>& block) {
  EXPECT_TRUE(block);
  if (!block) return {};
  Received all = read_block(block->body);
  EXPECT_EQ(all.size(), block->samples);
  for (const auto& [labels, sample] : all) EXPECT_EQ(sample.at_ms, block->at_ms);
  return all;
}

// The text's series, as a scraper with honor_labels has them.
std::map<Labels, double> scraped(const Cycle& cycle, const expose::ExposeOptions& options, const Labels& extra) {
  const auto text = expose::parse_exposition(expose::write_text(cycle, options), Format::kText);
  EXPECT_TRUE(text.ok());
  std::map<Labels, double> series;
  for (const auto& sample : text->samples) {
    Labels labels = sample.labels;
    labels["__name__"] = sample.name;
    labels.insert(extra.begin(), extra.end());
    series[labels] = std::stod(sample.value);
  }
  return series;
}

TEST(RemoteWrite, HasTheVerySeriesOfTheText) {
  const Cycle cycle = cycle_at(kSentAt);
  expose::ExposeOptions options = example_options();
  options.node = "n\"od\\e\n1";
  for (const size_t most : {size_t{0}, size_t{150}}) {
    options.max_series = most;
    const expose::ExtraLabels extra = {{"job", "gpu-ledger"}, {"instance", "node1"}, {"Cluster", "east"}};
    const auto wire = expose::remote_write_series(cycle, options, extra);
    const Received received = read_request(expose::write_request(wire, kSentAt));
    const auto wanted = scraped(cycle, options, {extra.begin(), extra.end()});
    ASSERT_GT(wanted.size(), 100u);
    ASSERT_EQ(received.size(), wanted.size());
    for (const auto& [labels, value] : wanted) {
      const auto found = received.find(labels);
      ASSERT_NE(found, received.end()) << labels.at("__name__");
      EXPECT_EQ(found->second.value(), value) << labels.at("__name__");
      EXPECT_EQ(found->second.at_ms, kSentAt);
    }
  }
}

TEST(RemoteWrite, ASeriesOwnLabelIsKept) {
  const auto wire =
      expose::remote_write_series(cycle_at(kSentAt), example_options(), {{"gpu", "other"}, {"job", "push"}});
  bool own = false, slurm = false;
  for (const auto& [labels, sample] : read_request(expose::write_request(wire, kSentAt))) {
    own |= labels.contains("gpu") && labels.at("gpu") == "0";
    slurm |= labels.contains("slurm_job_id") && labels.at("job") == labels.at("slurm_job_id");
  }
  EXPECT_TRUE(own);
  EXPECT_TRUE(slurm);
}

// Accounts and meter balance only together.
TEST(SnapshotPacker, ALargeSnapshotIsOneBlock) {
  Cycle large = cycle_at(kSentAt);
  ASSERT_FALSE(large.ledger.owners.empty());
  const OwnerAccount first = large.ledger.owners.front();
  for (int i = 0; i < 1000; ++i) {
    large.ledger.owners.push_back(first);
    large.ledger.owners.back().owner.pod = "p" + std::to_string(i);
  }
  SnapshotPacker packer{expose::ExtraLabels()};
  const Received all = read(packer.pack(large, example_options()));
  EXPECT_GT(all.size(), 2000u);
  EXPECT_EQ(all.size(), scraped(large, example_options(), {}).size());
}

TEST(SnapshotPacker, MarksTheEndOfASeriesOnce) {
  SnapshotPacker packer{expose::ExtraLabels{{"job", "x"}}};
  const Received first = read(packer.pack(cycle_at(kSentAt), example_options()));
  Cycle less = cycle_at(kSentAt + 1000);
  ASSERT_FALSE(less.ledger.owners.empty());
  less.ledger.owners.clear();
  const Received second = read(packer.pack(less, example_options()));
  const auto expected = scraped(less, example_options(), {{"job", "x"}});
  size_t ended = 0;
  for (const auto& [labels, sample] : second) {
    if (sample.bits != expose::kStaleMarker) continue;
    ++ended;
    EXPECT_TRUE(first.contains(labels));
    EXPECT_FALSE(expected.contains(labels));
  }
  EXPECT_GT(ended, 0u);
  EXPECT_EQ(second.size(), expected.size() + ended);
  less.batch.at.wall = milliseconds(kSentAt + 2000);
  EXPECT_EQ(read(packer.pack(less, example_options())).size(), expected.size()) << "markers are sent once";
  // It comes back.
  EXPECT_EQ(read(packer.pack(cycle_at(kSentAt + 3000), example_options())).size(), first.size());
}

TEST(SnapshotPacker, AtTheEndAllSeriesEnd) {
  SnapshotPacker packer{expose::ExtraLabels()};
  EXPECT_FALSE(packer.end());
  const Received last = read(packer.pack(cycle_at(kSentAt), example_options()));
  EXPECT_FALSE(packer.pack(cycle_at(kSentAt), example_options())) << "a snapshot is packed once";
  const Received markers = read(packer.end());
  EXPECT_EQ(markers.size(), last.size());
  for (const auto& [labels, sample] : markers) {
    EXPECT_TRUE(last.contains(labels));
    EXPECT_EQ(sample.bits, expose::kStaleMarker);
    EXPECT_EQ(sample.at_ms, kSentAt + 1);
  }
}

}  // namespace
}  // namespace gpuledger::app
