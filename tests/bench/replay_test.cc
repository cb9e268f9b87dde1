// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "app/commands/replay.h"
#include "crowded_node.h"
#include "unit/replay/trace_text.h"

namespace gpuledger::bench {
namespace {

constexpr double kMost = 5;

// Both in CPU seconds, the cheapest of a few times.
struct Cost {
  double reading = 1e9;
  double replaying = 1e9;
};

Cost cost_of(const std::string& name) {
  Cost least;
  for (int i = 0; i < 3; ++i) {
    const double began = cpu_seconds();
    const auto trace = replay::read_trace(replay::recorded(name));
    const double read = cpu_seconds();
    EXPECT_TRUE(trace.ok()) << name;
    if (!trace.ok()) return least;
    EXPECT_TRUE(app::run_replay(*trace, BookingRules{}).ok()) << name;
    least.reading = std::min(least.reading, read - began);
    least.replaying = std::min(least.replaying, cpu_seconds() - read);
  }
  return least;
}

// A recording of minutes is replayed in about the time that its text takes to be read: milliseconds. Measured 0.7
// times.
TEST(Replay, CostsNotMuchMoreThanReading) {
  double worst = 0;
  for (const std::string& name : replay::recordings()) {
    const Cost cost = cost_of(name);
    EXPECT_LT(cost.replaying, kMost * cost.reading) << name;
    worst = std::max(worst, cost.replaying / cost.reading);
  }
  RecordProperty("worst", std::to_string(worst));
}

}  // namespace
}  // namespace gpuledger::bench
