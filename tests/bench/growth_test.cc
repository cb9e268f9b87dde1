#include <gtest/gtest.h>

#include <algorithm>

#include "crowded_node.h"

// The promise: a cycle for eight GPUs with 128 processes each costs under 2 ms beyond the driver's calls and grows
// linearly. Here with room for a debug build on a busy machine; `bench` gives the figures.
namespace gpuledger::bench {
namespace {

constexpr uint32_t kGpus = 8;

// Of many cycles one of the cheapest: what a cycle needs when nobody else wants the caches.
double usual_milliseconds(uint32_t processes_per_gpu) {
  attribute::Engine engine((BookingRules()));
  CrowdedNode node = CrowdedNode::settled(kGpus, processes_per_gpu, engine);
  std::vector<double> cycles;
  for (int i = 0; i < 60; ++i) {
    const SampleBatch& batch = node.next();
    const double began = cpu_seconds();
    (void)engine.advance(batch, node.identities());
    cycles.push_back((cpu_seconds() - began) * 1e3);
  }
  std::sort(cycles.begin(), cycles.end());
  return cycles[cycles.size() / 10];
}

TEST(Growth, TwiceTheProcessesCostNoMoreThanThreeTimesTheTime) {
  const double half = usual_milliseconds(64);
  const double whole = usual_milliseconds(128);
  EXPECT_LT(whole, 3 * half);
  EXPECT_LT(whole, 12) << "milliseconds for eight GPUs with 128 processes each";
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
