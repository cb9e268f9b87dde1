// SPDX-License-Identifier: Apache-2.0
#include "identity/auto_pods.h"

#include <gtest/gtest.h>

#include <atomic>

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;

struct World {
  std::atomic<bool> possible{true};
  std::atomic<bool> answers{true};
  std::atomic<bool> fails{true};  // where it does not answer; false: it is silent
  std::atomic<int> opened{0};
};

class FakePods final : public PodSource {
 public:
  FakePods(std::string name, World& world) : name_(std::move(name)), world_(world) { ++world.opened; }
  std::shared_ptr<const PodView> view() const override {
    if (world_.answers) answered_ = true;
    return answered_ ? view_ : nullptr;
  }
  SourceHealth health() const override {
    SourceHealth health{.source = name_, .up = world_.answers, .reason = {}, .errors = {}};
    if (!health.up && world_.fails) health.errors["unavailable"] = 1;
    if (!health.up) health.reason = "no answer from " + name_;
    return health;
  }

 private:
  std::string name_;
  World& world_;
  mutable std::atomic<bool> answered_{false};
  std::shared_ptr<const PodView> view_ = std::make_shared<const PodView>();
};

PodChoice choice(const std::string& name, World& world) {
  return {name, [&world] { return world.possible ? std::string() : std::string("no socket"); },
          [name, &world] { return std::make_unique<FakePods>(name, world); }};
}

constexpr AutoPods::Timing kQuick{.patience = 200ms, .again = 50ms, .step = 2ms};

template <typename Holds>
bool eventually(Holds holds) {
  for (int i = 0; i < 1000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

TEST(AutoPods, TakesTheFirstThatWorksAndStartsNoOther) {
  World first, second;
  AutoPods pods({choice("first", first), choice("second", second)}, kQuick);
  ASSERT_TRUE(eventually([&] { return pods.view() != nullptr; }));
  EXPECT_EQ(pods.health().source, "first");
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(second.opened, 0);
  EXPECT_EQ(first.opened, 1);
}

TEST(AutoPods, FallsBackAndReturnsWhenTheBetterOneCanBeHad) {
  World first, second;
  first.possible = false;
  AutoPods pods({choice("first", first), choice("second", second)}, kQuick);
  ASSERT_TRUE(eventually([&] { return pods.health().source == "second"; }));
  EXPECT_EQ(first.opened, 0) << "what cannot be had is not even tried";
  first.possible = true;
  EXPECT_TRUE(eventually([&] { return pods.health().source == "first"; }));
}

TEST(AutoPods, OneThatFailsIsLeftWhenAnotherAnswersAndItsNamesStayUntilThen) {
  World first, second;
  second.answers = false;
  AutoPods pods({choice("first", first), choice("second", second)}, kQuick);
  ASSERT_TRUE(eventually([&] { return pods.view() != nullptr; }));
  first.answers = false;
  ASSERT_TRUE(eventually([&] { return second.opened > 0; }));
  EXPECT_NE(pods.view(), nullptr);
  second.answers = true;
  EXPECT_TRUE(eventually([&] { return pods.health().source == "second"; }));
}

TEST(AutoPods, WhileNobodyWorksEverythingThatWasTriedIsTold) {
  World first, second;
  first.possible = false;
  second.answers = false;
  AutoPods pods({choice("first", first), choice("second", second)}, kQuick);
  ASSERT_TRUE(eventually([&] { return second.opened > 1; }));
  EXPECT_EQ(pods.view(), nullptr);
  EXPECT_EQ(pods.health().source, "pods");
  EXPECT_FALSE(pods.health().up);
  EXPECT_NE(pods.health().reason.find("no socket"), std::string::npos);
  const auto healths = pods.healths();
  ASSERT_EQ(healths.size(), 1u);
  EXPECT_EQ(healths[0].source, "second");
  EXPECT_GE(healths[0].errors.at("unavailable"), 1u);
}

TEST(AutoPods, NothingToChooseFromIsSaid) {
  World first;
  first.possible = false;
  AutoPods pods({choice("first", first)}, kQuick);
  ASSERT_TRUE(eventually([&] { return pods.health().reason.find("no socket") != std::string::npos; }));
  ASSERT_EQ(pods.healths().size(), 1u);
  EXPECT_EQ(pods.healths()[0].source, "pods");
}

TEST(AutoPods, IsUndecidedUntilAllWereTried) {
  World failing, slow;
  failing.answers = false;
  slow.answers = false;
  slow.fails = false;
  AutoPods pods({choice("failing", failing), choice("slow", slow)}, {.patience = 60s, .again = 60s, .step = 2ms});
  ASSERT_TRUE(eventually([&] { return slow.opened > 0; }));
  EXPECT_TRUE(pods.health().undecided);
  ASSERT_EQ(pods.healths().size(), 1u);
  EXPECT_EQ(pods.healths()[0].source, "failing");
  EXPECT_TRUE(pods.healths()[0].undecided) << "it may never be needed";
  slow.answers = true;
  ASSERT_TRUE(eventually([&] { return pods.view() != nullptr; }));
  EXPECT_FALSE(pods.health().undecided);
  EXPECT_EQ(pods.healths().size(), 1u);
  EXPECT_EQ(pods.healths()[0].source, "slow");
}

TEST(AutoPods, IsDecidedWhenNobodyAnswersInTime) {
  World slow;
  slow.answers = false;
  slow.fails = false;
  AutoPods pods({choice("slow", slow)}, kQuick);
  EXPECT_TRUE(pods.health().undecided);
  ASSERT_TRUE(eventually([&] { return !pods.health().undecided; }));
  EXPECT_FALSE(pods.healths()[0].undecided);
  EXPECT_EQ(pods.healths()[0].errors.at("timeout"), 1u);
}

TEST(AutoPods, EndsAtOnce) {
  World slow;
  slow.answers = false;
  const auto begin = std::chrono::steady_clock::now();
  { AutoPods pods({choice("slow", slow)}, {.patience = 60s, .again = 60s, .step = 100ms}); }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
}

}  // namespace
}  // namespace gpuledger::identity
