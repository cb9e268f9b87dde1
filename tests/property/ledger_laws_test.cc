// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "attribute/books/engine.h"
#include "attribute/state/state_text.h"
#include "support/batch_builder.h"
#include "support/laws.h"

// Random histories of a node: processes that come, go, share, exec into a pod, reuse pids; counters that restart or
// jump, and readings that are false; GPUs that get lost, drivers that go away, for a second or for longer than the
// retention, utilization that fails. After every step the books must balance.
namespace gpuledger {
namespace {

using testing::BatchBuilder;

struct SimpleProcess {
  Pid pid;
  uint64_t start;
  std::string pod;
};

class RandomNode {
 public:
  explicit RandomNode(uint64_t seed) : random_(seed) {}

  BatchBuilder next() {
    // Mostly a second, sometimes a hiccup, seldom a suspended machine. Not while something is lost for long: after both
    // it may be forgotten.
    const bool calm = now_ > driver_away_until_ && now_ > *std::max_element(lost_until_, lost_until_ + kGpus);
    now_ += one_in(50) ? 0.02 : calm && one_in(200) ? 60.0 : 0.9 + 0.2 * fraction();
    BatchBuilder builder(now_);
    if (one_in(400)) driver_away_until_ = now_ + kLostForLong;
    if (one_in(60) || now_ < driver_away_until_) return builder;
    for (uint32_t gpu = 0; gpu < kGpus; ++gpu) add_gpu(builder, gpu);
    return builder;
  }

  // Everybody is gone and the counters begin anew. Starts go on, so that every process has a name of its own.
  void reboot() {
    for (auto& processes : processes_) processes.clear();
    for (int64_t& counter : counters_) counter = 0;
  }

  // More than the GPU has drawn is on no meter.
  void expect_no_joule_invented(const Ledger& ledger) const {
    for (const DeviceAccount& device : ledger.devices) {
      ASSERT_LE(device.measured, Energy::millijoules(drawn_[device.description->index])) << device.description->index;
    }
  }

 private:
  static constexpr uint32_t kGpus = 3;
  static constexpr double kLostForLong = 30;  // seconds: longer than the retention of processes, not of owners

  void add_gpu(BatchBuilder& builder, uint32_t index) {
    if (one_in(300)) counters_[index] = 0;
    if (one_in(500)) counters_[index] += 50'000'000'000;
    const auto drawn = static_cast<int64_t>(fraction() * 700'000);
    counters_[index] += drawn;
    drawn_[index] += drawn;
    builder.gpu(index, one_in(20) ? false_reading(counters_[index]) : counters_[index]);
    DeviceSample& device = builder.device();
    if (one_in(400)) lost_until_[index] = now_ + kLostForLong;
    if (one_in(80) || now_ < lost_until_[index]) {
      device.up = false;
      device.energy_counter.reset();
      return;
    }
    if (one_in(30)) device.energy_counter.reset();
    auto& processes = processes_[index];
    const auto pid = static_cast<Pid>(1 + 40 * index + random_() % 40);  // a pid is one process of the node
    const bool free = std::none_of(processes.begin(), processes.end(), [&](auto& other) { return other.pid == pid; });
    if (one_in(4) && processes.size() < 12 && free) processes.push_back({pid, ++starts_, ""});
    if (one_in(5) && !processes.empty())
      processes.erase(processes.begin() + static_cast<long>(random_() % processes.size()));
    for (SimpleProcess& process : processes) {
      if (process.pod.empty() && one_in(20)) process.pod = "pod-" + std::to_string(random_() % 6);
      const Owner owner = process.pod.empty() ? Owner{} : testing::pod_owner(process.pod);
      builder.process(process.pid, one_in(2) ? 0 : fraction(), process.start, owner);
      if (one_in(25)) builder.last().mps_client = true;
    }
    if (one_in(40)) builder.gone_process(static_cast<Pid>(1000 + random_() % 5), fraction());
    if (one_in(25)) device.utilization = UtilizationState::kFailed;
    if (one_in(100)) device.utilization = UtilizationState::kUnsupported;
  }

  int64_t false_reading(int64_t counter) {
    const int64_t readings[] = {0, counter / 2, counter + 1'000'000'000, 999'999'999'999'999,
                                static_cast<int64_t>(random_() % 1'000'000'000'000'000)};
    return readings[random_() % std::size(readings)];
  }

  bool one_in(uint64_t n) { return random_() % n == 0; }
  double fraction() { return static_cast<double>(random_() >> 11) / 9007199254740992.0; }

  std::mt19937_64 random_;
  double now_ = 0;
  double driver_away_until_ = 0;
  double lost_until_[kGpus] = {};
  int64_t counters_[kGpus] = {1'000'000, 0, 900'000'000};
  int64_t drawn_[kGpus] = {1'000'000, 0, 0};  // a false first reading may be lower
  uint64_t starts_ = 1000;
  std::vector<SimpleProcess> processes_[kGpus];
};

// GPU_LEDGER_PROPERTY_SEEDS asks for more histories than the quick loop has time for.
uint64_t histories() {
  const char* asked = std::getenv("GPU_LEDGER_PROPERTY_SEEDS");
  return asked ? std::strtoull(asked, nullptr, 10) : 3;
}

class LedgerLaws : public ::testing::TestWithParam<std::tuple<Attribution, StaticPower>> {};

TEST_P(LedgerLaws, BooksBalanceAndNothingFallsInAnyHistory) {
  for (uint64_t seed = 1; seed <= histories(); ++seed) {
    BookingRules rules;
    std::tie(rules.attribution, rules.static_power) = GetParam();
    rules.retention = std::chrono::seconds(20);
    // Every other history is full of accounts that end.
    if (seed % 2 == 0) {
      rules.owner_retention = std::chrono::seconds(100);
      rules.most_exited_processes = 3;
      rules.most_ended_owners = 2;
    }
    attribute::Engine engine(rules);
    RandomNode node(seed);
    testing::NeverFalls counters;
    testing::IncreasesAreWhatWasSpent increases;
    for (int step = 0; step < 1000; ++step) {
      const BatchBuilder batch = node.next();
      const Ledger ledger = engine.advance(batch.batch(), batch.identities());
      testing::expect_balanced(ledger);
      node.expect_no_joule_invented(ledger);
      counters.check(ledger);
      increases.check(ledger);
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

// The program is killed at any moment, sometimes the machine with it, and what it had written goes on, through its
// text, in another engine.
TEST_P(LedgerLaws, BooksBalanceAndNothingFallsOverRestarts) {
  for (uint64_t seed = 101; seed <= 104; ++seed) {
    BookingRules rules;
    std::tie(rules.attribution, rules.static_power) = GetParam();
    rules.retention = std::chrono::seconds(20);
    if (seed % 2 == 0) {
      rules.owner_retention = std::chrono::seconds(100);
      rules.most_ended_owners = 2;
    }
    std::mt19937_64 random(seed);
    RandomNode node(seed);
    testing::NeverFalls counters;
    testing::IncreasesAreWhatWasSpent increases;
    auto engine = std::make_unique<attribute::Engine>(rules);
    int boot = 0;
    engine->restore({}, "boot-0");
    for (int step = 0; step < 1000; ++step) {
      if (random() % 12 == 0) {
        const auto state = attribute::parse_state(attribute::write_state(engine->state()));
        ASSERT_TRUE(state.ok()) << state.error().message << ", seed " << seed << ", step " << step;
        for (uint64_t missed = random() % 5; missed > 0; --missed) (void)node.next();
        if (random() % 10 == 0) {
          node.reboot();
          ++boot;
        }
        engine = std::make_unique<attribute::Engine>(rules);
        engine->restore(*state, "boot-" + std::to_string(boot));
      }
      const BatchBuilder batch = node.next();
      const Ledger ledger = engine->advance(batch.batch(), batch.identities());
      testing::expect_balanced(ledger);
      node.expect_no_joule_invented(ledger);
      counters.check(ledger);
      increases.check(ledger);
      if (HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllRules, LedgerLaws,
    ::testing::Combine(::testing::Values(Attribution::kAdaptive, Attribution::kUtilization, Attribution::kMeasuredOnly),
                       ::testing::Values(StaticPower::kProportional, StaticPower::kEqual, StaticPower::kSeparate)));

TEST(LedgerLaws, SwappingTwoProcessesSwapsTheirEnergy) {
  const auto run = [](double first, double second) {
    attribute::Engine engine(BookingRules{});
    Ledger ledger;
    for (int i = 0; i <= 5; ++i) {
      BatchBuilder batch(i);
      batch.gpu(0, i * 123'456).process(1, first).process(2, second);
      ledger = engine.advance(batch.batch(), batch.identities());
    }
    return std::pair(ledger.processes[0].booked.shared, ledger.processes[1].booked.shared);
  };
  const auto [a, b] = run(0.7, 0.2);
  const auto [c, d] = run(0.2, 0.7);
  EXPECT_NEAR(static_cast<double>(a.microjoules()), static_cast<double>(d.microjoules()), 5);
  EXPECT_NEAR(static_cast<double>(b.microjoules()), static_cast<double>(c.microjoules()), 5);
  EXPECT_EQ(a + b, c + d);
}

}  // namespace
}  // namespace gpuledger
