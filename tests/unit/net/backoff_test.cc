// SPDX-License-Identifier: Apache-2.0
#include "net/backoff.h"

#include <gtest/gtest.h>

#include <set>

namespace gpuledger::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Backoff, DoublesUpToItsCapWithJitter) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Backoff backoff({}, seed);
    Backoff::Time now{seconds(1000)};
    milliseconds base(800);
    for (int i = 0; i < 12; ++i) {
      const auto wait = backoff.next(now);
      EXPECT_GE(wait, base);
      EXPECT_LT(wait, base * 2);
      base = std::min<milliseconds>(base * 2, seconds(30));
      now += wait;
    }
  }
}

TEST(Backoff, NoTwoNodesWaitTheSame) {
  std::set<Backoff::Duration> waits;
  for (unsigned seed = 1; seed <= 20; ++seed) waits.insert(Backoff({}, seed * 7919).next({}));
  EXPECT_GT(waits.size(), 15u);
}

TEST(Backoff, BeginsAnewAfterTwoMinutesOfHealth) {
  Backoff backoff({}, 1);
  Backoff::Time now{seconds(1000)};
  for (int i = 0; i < 6; ++i) backoff.next(now);
  EXPECT_GE(backoff.next(now + seconds(119)), seconds(30));
  EXPECT_LT(backoff.next(now + seconds(119 + 121)), milliseconds(1600));
}

TEST(Backoff, BeginsAnewAfterASuccess) {
  Backoff backoff({}, 1);
  const Backoff::Time now{seconds(1000)};
  for (int i = 0; i < 6; ++i) backoff.next(now);
  backoff.succeeded();
  EXPECT_LT(backoff.next(now), milliseconds(1600));
  EXPECT_GE(backoff.next(now), milliseconds(1600));
}

}  // namespace
}  // namespace gpuledger::net
