// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "crowded_node.h"
#include "expose/expose.h"

// The promise: what a cycle costs beyond the driver's calls, what a scrape costs and what is held grow with the number
// of processes and not faster. `bench_table` gives the figures.
namespace gpuledger::bench {
namespace {

constexpr uint32_t kGpus = 8;
constexpr uint32_t kFew = 64;
constexpr uint32_t kMany = 256;
constexpr double kTimes = 1.0 * kMany / kFew;
constexpr double kTolerance = 1.2;
// The books of 16 x 512 processes and the text of 8 x 256 are larger than a processor's caches: measured 1.11 to 1.16
// times what is linear, 1.24 beside twenty others. A quadratic part would make it 2 or more.
constexpr double kToleranceBeyondCaches = 1.4;
constexpr int kRounds = 40;

// Everybody is there and known: the most work that a cycle can be.
struct Settled {
  explicit Settled(uint32_t processes_per_gpu, uint32_t gpus = kGpus)
      : engine((BookingRules())), node(CrowdedNode::settled(gpus, processes_per_gpu, engine)) {}
  attribute::Engine engine;
  CrowdedNode node;
};

// CPU seconds of this thread. Of many rounds the cheapest: what is needed when nobody else wants the caches.
template <typename Work>
void keep_least(double& least, Work work) {
  const double began = cpu_seconds();
  work();
  least = std::min(least, cpu_seconds() - began);
}

double ratio_of_cycles(Settled& few, Settled& many) {
  double least_few = 1e9;
  double least_many = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    for (auto [one, least] : {std::pair(&few, &least_few), std::pair(&many, &least_many)}) {
      const SampleBatch& batch = one->node.next();
      keep_least(*least, [&] { (void)one->engine.advance(batch, one->node.identities()); });
    }
  }
  return least_many / least_few;
}

double ratio_of_scrapes(Settled& few, Settled& many, size_t max_series) {
  expose::ExposeOptions options;
  options.max_series = max_series;
  const Cycle cycle_of_few = few.node.cycle(few.engine);
  const Cycle cycle_of_many = many.node.cycle(many.engine);
  double least_few = 1e9;
  double least_many = 1e9;
  for (int round = 0; round < kRounds / 2; ++round) {
    keep_least(least_few, [&] { (void)expose::write_text(cycle_of_few, options); });
    keep_least(least_many, [&] { (void)expose::write_text(cycle_of_many, options); });
  }
  return least_many / least_few;
}

// A machine that others use makes single measurements worse, never better: the best of a few tries counts.
template <typename Measure>
double best_of_three(Measure measure, double enough = kTimes * kTolerance) {
  double best = measure();
  for (int more = 0; more < 2 && best > enough; ++more) best = std::min(best, measure());
  return best;
}

TEST(Growth, ACycleIsLinearInTheNumberOfProcesses) {
  Settled few(kFew);
  Settled many(kMany);
  EXPECT_LT(best_of_three([&] { return ratio_of_cycles(few, many); }), kTimes * kTolerance);
}

TEST(Growth, ACycleIsLinearTo16GpusWith512ProcessesEach) {
  constexpr double kMost = 2 * kToleranceBeyondCaches;
  Settled half(512, 8);
  Settled whole(512, 16);
  EXPECT_LT(best_of_three([&] { return ratio_of_cycles(half, whole); }, kMost), kMost);
}

TEST(Growth, AScrapeIsLinearWithAndWithoutALimitOfSeries) {
  Settled few(kFew);
  Settled many(kMany);
  for (const size_t limit : {size_t{0}, size_t{2000}}) {
    EXPECT_LT(best_of_three([&] { return ratio_of_scrapes(few, many, limit); }), kTimes * kToleranceBeyondCaches)
        << limit;
  }
}

TEST(Growth, MemoryIsLinearInTheNumberOfProcesses) {
  const auto bytes_of = [](uint32_t processes_per_gpu) {
    const size_t before = allocated_bytes();
    Settled settled(processes_per_gpu);
    const Cycle cycle = settled.node.cycle(settled.engine);
    return static_cast<double>(allocated_bytes() - before);
  };
  EXPECT_LT(bytes_of(kMany), kTimes * kTolerance * bytes_of(kFew));
}

// Records of shared steps are kept to be estimated again: they must not grow with the crowd.
TEST(Growth, MemoryIsBounded) {
  const auto bytes_of = [](uint32_t processes_per_gpu) {
    const size_t before = allocated_bytes();
    attribute::Engine engine((BookingRules()));
    const CrowdedNode node = CrowdedNode::settled(1, processes_per_gpu, engine);
    CrowdedNode later = node;
    for (int i = 0; i < 600; ++i) (void)engine.advance(later.next(), later.identities());
    return allocated_bytes() - before;
  };
  EXPECT_LT(bytes_of(128), size_t{3} << 20);
}

}  // namespace
}  // namespace gpuledger::bench
