// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/split.h"

#include <gtest/gtest.h>

#include <random>

namespace gpuledger::attribute {
namespace {

int64_t sum(const std::vector<Energy>& parts) {
  int64_t total = 0;
  for (Energy part : parts) total += part.microjoules();
  return total;
}

TEST(Split, ExampleOfTheContract) {
  const std::vector<uint64_t> weights = {80, 20};
  const auto parts = split_exactly(Energy::millijoules(700'000), weights);
  EXPECT_EQ(parts[0], Energy::millijoules(560'000));
  EXPECT_EQ(parts[1], Energy::millijoules(140'000));
}

TEST(Split, RemainderGoesToTheLargestFraction) {
  const std::vector<uint64_t> weights = {1, 1, 4};  // of 10: 1.67, 1.67, 6.67
  const auto parts = split_exactly(Energy::microjoules(10), weights);
  EXPECT_EQ(parts[0].microjoules(), 2);
  EXPECT_EQ(parts[1].microjoules(), 2);
  EXPECT_EQ(parts[2].microjoules(), 6);
}

TEST(Split, AllZeroWeightsMeanEqualParts) {
  const std::vector<uint64_t> weights = {0, 0, 0};
  const auto parts = split_exactly(Energy::microjoules(7), weights);
  EXPECT_EQ(sum(parts), 7);
  EXPECT_EQ(parts[0].microjoules(), 3);
  EXPECT_EQ(parts[2].microjoules(), 2);
}

TEST(Split, ZeroWeightGetsNothingBesideOthers) {
  const std::vector<uint64_t> weights = {0, 3, 7};
  EXPECT_EQ(split_exactly(Energy::microjoules(999'999'937), weights)[0].microjoules(), 0);
}

TEST(Split, SumIsExactForAnyInput) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<uint64_t> weights(1 + random() % 40);
    for (uint64_t& weight : weights) weight = random() % 5 == 0 ? 0 : random() >> (random() % 64);
    const int64_t total = static_cast<int64_t>(random() >> (1 + random() % 60));
    const auto parts = split_exactly(Energy::microjoules(total), weights);
    ASSERT_EQ(sum(parts), total);
    for (Energy part : parts) ASSERT_GE(part.microjoules(), 0);
  }
}

}  // namespace
}  // namespace gpuledger::attribute
