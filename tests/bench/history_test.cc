// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "app/runtime/history_keeper.h"
#include "crowded_node.h"
#include "expose/expose.h"

// The promise: an hour of history is a few megabytes, and the cycle does not feel it.
namespace gpuledger::bench {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kGpus = 8;
constexpr uint32_t kOwners = 128;
constexpr int kSteps = 365;

// Ten seconds later: everybody has worked, some more than others.
void go_on(Cycle& cycle, int step) {
  cycle.batch.at.steady += 10s;
  cycle.batch.at.wall += 10s;
  for (OwnerAccount& owner : cycle.ledger.owners) {
    const auto place = static_cast<size_t>(&owner - cycle.ledger.owners.data());
    const Energy more = Energy::microjoules(1'000'003 * static_cast<int64_t>(1 + (place * 7 + step * 13ul) % 97));
    owner.booked.shared += more;
    for (DeviceAccount& device : cycle.ledger.devices) {
      if (device.description->uuid == owner.gpu) device.measured += more;
    }
  }
}

TEST(HistoryOfACrowdedNode, IsSmallAndFast) {
  attribute::Engine engine((BookingRules()));
  CrowdedNode node = CrowdedNode::settled(kGpus, kOwners, engine);
  Cycle cycle = node.cycle(engine);
  ASSERT_EQ(cycle.ledger.owners.size(), size_t{kGpus} * kOwners);

  const size_t before = allocated_bytes();
  app::HistoryKeeper keeper;
  double least_step = 1e9;
  double least_between = 1e9;
  for (int step = 0; step < kSteps; ++step) {
    const double began = cpu_seconds();
    ASSERT_TRUE(keeper.add(cycle));
    const double added = cpu_seconds();
    ASSERT_FALSE(keeper.add(cycle));
    least_between = std::min(least_between, cpu_seconds() - added);
    if (step > 0) least_step = std::min(least_step, added - began);
    go_on(cycle, step);
  }
  const size_t held = allocated_bytes() - before;
  ASSERT_EQ(keeper.history()->steps.size(), 360u);
  const std::string text = expose::write_history(*keeper.history());
  RecordProperty("held_bytes", std::to_string(held));
  std::printf(
      "8 GPUs x 128 owners, one hour: %zu bytes held, %zu by its own count, %zu bytes of JSON; a step takes "
      "%.3f ms, a cycle between two steps %.6f ms\n",
      held, keeper.bytes(), text.size(), least_step * 1e3, least_between * 1e3);
  EXPECT_LT(held, size_t{3} << 20);
  EXPECT_GT(keeper.bytes() + (size_t{1} << 20), held) << "its own count is honest";
  EXPECT_LT(least_step, 0.02) << "once in ten seconds";
  EXPECT_LT(least_between, 0.0001);
}

}  // namespace
}  // namespace gpuledger::bench
