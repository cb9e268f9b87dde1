// SPDX-License-Identifier: Apache-2.0
#include "identity/auto_pods.h"

#include <gtest/gtest.h>

#include <atomic>

#include "support/manual_timer.h"
#include "support/thread_limit.h"

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

class AutoPodsTest : public ::testing::Test {
 protected:
  AutoPods::Timing timing() const { return {.timer = &timer_}; }
  // Lets five minutes pass, or fewer if the condition holds sooner.
  bool within_minutes(const std::function<bool()>& condition) {
    for (int i = 0; i < 60 && !condition(); ++i) EXPECT_TRUE(timer_.move_and_wait(5s));
    return condition();
  }

  ManualTimer timer_;
  World first_, second_;
};

TEST_F(AutoPodsTest, TakesTheFirstThatWorksAndStartsNoOther) {
  const auto pods = *AutoPods::start({choice("first", first_), choice("second", second_)}, timing());
  ASSERT_TRUE(eventually([&] { return pods->view() != nullptr; }));
  EXPECT_EQ(pods->health().source, "first");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(timer_.move_and_wait(1min));
  EXPECT_EQ(second_.opened, 0);
  EXPECT_EQ(first_.opened, 1);
}

TEST_F(AutoPodsTest, DoesNotStartWithoutAThread) {
  EXPECT_TRUE(support::passes_without_threads(
      [this] { EXPECT_FALSE(AutoPods::start({choice("first", first_)}, timing()).ok()); }));
}

TEST_F(AutoPodsTest, FallsBackAndReturnsWhenTheBetterOneCanBeHad) {
  first_.possible = false;
  const auto pods = *AutoPods::start({choice("first", first_), choice("second", second_)}, timing());
  ASSERT_TRUE(eventually([&] { return pods->health().source == "second"; }));
  EXPECT_EQ(first_.opened, 0) << "what cannot be had is not even tried";
  first_.possible = true;
  ASSERT_TRUE(timer_.move_and_wait(59s));
  EXPECT_EQ(pods->health().source, "second") << "better ones are tried once a minute";
  ASSERT_TRUE(timer_.move_and_wait(1s));
  EXPECT_EQ(pods->health().source, "first");
  EXPECT_EQ(second_.opened, 1);
}

TEST_F(AutoPodsTest, OneThatFailsIsLeftWhenAnotherAnswersAndItsNamesStayUntilThen) {
  second_.answers = false;
  const auto pods = *AutoPods::start({choice("first", first_), choice("second", second_)}, timing());
  ASSERT_TRUE(eventually([&] { return pods->view() != nullptr; }));
  ASSERT_TRUE(timer_.end_wait());
  first_.answers = false;
  ASSERT_TRUE(timer_.move_and_wait(59s));
  EXPECT_EQ(second_.opened, 0) << "a minute's failure is needed";
  ASSERT_TRUE(timer_.move_and_wait(2s));
  EXPECT_EQ(second_.opened, 1);
  EXPECT_NE(pods->view(), nullptr);
  second_.answers = true;
  EXPECT_TRUE(within_minutes([&] { return pods->health().source == "second"; }));
}

TEST_F(AutoPodsTest, WhileNobodyWorksEverythingThatWasTriedIsTold) {
  first_.possible = false;
  second_.answers = false;
  const auto pods = *AutoPods::start({choice("first", first_), choice("second", second_)}, timing());
  ASSERT_TRUE(within_minutes([&] { return second_.opened > 1; }));
  EXPECT_EQ(pods->view(), nullptr);
  EXPECT_EQ(pods->health().source, "pods");
  EXPECT_FALSE(pods->health().up);
  EXPECT_NE(pods->health().reason.find("no socket"), std::string::npos);
  const auto healths = pods->healths();
  ASSERT_EQ(healths.size(), 1u);
  EXPECT_EQ(healths[0].source, "second");
  EXPECT_GE(healths[0].errors.at("unavailable"), 1u);
}

TEST_F(AutoPodsTest, NothingToChooseFromIsSaid) {
  first_.possible = false;
  const auto pods = *AutoPods::start({choice("first", first_)}, timing());
  ASSERT_TRUE(eventually([&] { return pods->health().reason.find("no socket") != std::string::npos; }));
  ASSERT_EQ(pods->healths().size(), 1u);
  EXPECT_EQ(pods->healths()[0].source, "pods");
}

TEST_F(AutoPodsTest, IsUndecidedUntilAllWereTried) {
  World failing, slow;
  failing.answers = false;
  slow.answers = false;
  slow.fails = false;
  const auto pods = *AutoPods::start({choice("failing", failing), choice("slow", slow)}, timing());
  ASSERT_TRUE(eventually([&] { return slow.opened > 0; }));
  EXPECT_TRUE(pods->health().undecided);
  ASSERT_EQ(pods->healths().size(), 1u);
  EXPECT_EQ(pods->healths()[0].source, "failing");
  EXPECT_TRUE(pods->healths()[0].undecided) << "it may never be needed";
  slow.answers = true;
  ASSERT_TRUE(timer_.end_wait());
  ASSERT_NE(pods->view(), nullptr);
  EXPECT_FALSE(pods->health().undecided);
  EXPECT_EQ(pods->healths().size(), 1u);
  EXPECT_EQ(pods->healths()[0].source, "slow");
}

TEST_F(AutoPodsTest, IsDecidedWhenNobodyAnswersInTime) {
  World slow;
  slow.answers = false;
  slow.fails = false;
  const auto pods = *AutoPods::start({choice("slow", slow)}, timing());
  ASSERT_TRUE(timer_.end_wait());
  ASSERT_TRUE(timer_.move_and_wait(9s));
  EXPECT_TRUE(pods->health().undecided) << "its ten seconds are not over";
  ASSERT_TRUE(timer_.move_and_wait(1s));
  EXPECT_FALSE(pods->health().undecided);
  EXPECT_FALSE(pods->healths()[0].undecided);
  EXPECT_EQ(pods->healths()[0].errors.at("timeout"), 1u);
}

// On the machine's own time: without the stop each of them would wait for hours.
TEST_F(AutoPodsTest, EndsWhileItWaits) {
  World silent, failing;
  silent.answers = failing.answers = silent.fails = false;
  {
    const auto pods = *AutoPods::start({choice("silent", silent)}, {.patience = 3h, .again = 3h, .step = 1h});
    ASSERT_TRUE(eventually([&] { return silent.opened == 1; }));
  }
  const auto pods = *AutoPods::start({choice("failing", failing)}, {.patience = 3h, .again = 3h, .step = 1h});
  ASSERT_TRUE(eventually([&] { return !pods->health().undecided; }));
}

}  // namespace
}  // namespace gpuledger::identity
