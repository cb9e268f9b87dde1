// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/history_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "expose/expose.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;

Owner pod(const std::string& name, const std::string& container = "main") {
  Owner owner;
  owner.kind = OwnerKind::kPod;
  owner.name_space = "team";
  owner.pod = name;
  owner.container = container;
  return owner;
}

// Books that the test writes: joules per owner and GPU.
class HistoryNode {
 public:
  explicit HistoryNode(int gpus) : spent_(static_cast<size_t>(gpus)) {
    for (int i = 0; i < gpus; ++i) {
      auto description = std::make_shared<DeviceDescription>();
      description->uuid = {"GPU-" + std::to_string(i)};
      description->index = static_cast<uint32_t>(i);
      description->power_limit = Power::watts(700);
      descriptions_.push_back(description);
      up_.push_back(true);
      idle_.emplace_back();
      closed_.emplace_back();
    }
  }
  void wait(Nanoseconds time) { now_.steady += time, now_.wall += time; }
  void set_wall(Nanoseconds wall) { now_.wall = wall; }
  void spend(size_t gpu, const Owner& owner, int joules) { spent_[gpu][owner] += Energy::millijoules(joules * 1000LL); }
  void idle(size_t gpu, int joules) { idle_[gpu] += Energy::millijoules(joules * 1000LL); }
  void close(size_t gpu, const Owner& owner) {
    closed_[gpu] += spent_[gpu][owner];
    spent_[gpu].erase(owner);
  }
  void set_up(size_t gpu, bool up) { up_[gpu] = up; }
  void remove_last() { descriptions_.pop_back(); }
  void restart_books() {
    for (auto& owners : spent_) owners.clear();
    for (Energy& energy : idle_) energy = Energy();
    for (Energy& energy : closed_) energy = Energy();
  }

  Cycle cycle() const {
    Cycle cycle;
    cycle.batch.at = now_;
    for (size_t i = 0; i < descriptions_.size(); ++i) {
      DeviceSample& sample = cycle.batch.devices.emplace_back();
      sample.description = descriptions_[i];
      sample.up = up_[i];
      DeviceAccount& device = cycle.ledger.devices.emplace_back();
      device.description = descriptions_[i];
      device.up = up_[i];
      device.unattributed[0] = idle_[i];
      device.measured = idle_[i] + closed_[i];
      for (const auto& [owner, energy] : spent_[i]) {
        OwnerAccount& account = cycle.ledger.owners.emplace_back();
        account.owner = owner;
        account.gpu = descriptions_[i]->uuid;
        account.booked.shared = energy;
        device.measured += energy;
      }
    }
    return cycle;
  }

 private:
  Timestamp now_{1000s, 1'700'000'000s};
  std::vector<std::shared_ptr<const DeviceDescription>> descriptions_;
  std::vector<bool> up_;
  std::vector<std::map<Owner, Energy>> spent_;
  std::vector<Energy> idle_;
  std::vector<Energy> closed_;
};

json shown(const HistoryKeeper& keeper) {
  return json::parse(expose::write_history(*keeper.history()));
}

const HistoryPoint& last_point(const HistoryKeeper& keeper) {
  return keeper.history()->steps.back()->points.back();
}

TEST(History, BeginsEmptyAndHasAPointPerStep) {
  HistoryKeeper keeper;
  HistoryNode node(1);
  EXPECT_TRUE(keeper.add(node.cycle()));
  EXPECT_EQ(shown(keeper), json::parse(R"({"at":1700000000.0,"gpus":[],"owners":[],"step_seconds":10.0})"));
  for (int second = 1; second <= 30; ++second) {
    node.wait(1s);
    node.spend(0, pod("a"), 300);
    node.spend(0, pod("a", "side"), 50);
    node.idle(0, 100);
    EXPECT_EQ(keeper.add(node.cycle()), second % 10 == 0) << second;
  }
  const json history = shown(keeper);
  ASSERT_EQ(history["gpus"].size(), 1u);
  EXPECT_EQ(history["owners"], json::parse(R"([{"namespace":"team","owner":"pod","owner_text":"team/a"}])"));
  const json& points = history["gpus"][0]["points"];
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[2], json::parse(R"({"energy_joules":4500.0,"from":1700000020.0,"others_joules":0.0,
    "owners":[[0,3500.0]],"power_limit_watts":700.0,"to":1700000030.0,"unattributed_joules":1000.0})"))
      << "the containers of a pod are one owner";
}

TEST(History, TheLargestOwnersHaveNamesAndAllJoulesAreThere) {
  HistoryKeeper keeper;
  HistoryNode node(1);
  keeper.add(node.cycle());
  for (int i = 0; i < 40; ++i) node.spend(0, pod("p" + std::to_string(i)), 1 + i);
  node.idle(0, 7);
  node.wait(10s);
  keeper.add(node.cycle());
  const HistoryPoint& point = last_point(keeper);
  ASSERT_EQ(point.parts.size(), HistoryKeeper::kOwnersPerPoint);
  EXPECT_EQ(point.parts.front().owner->text, "team/p39");
  EXPECT_EQ(point.parts.back().owner->text, "team/p24");
  EXPECT_EQ(point.others, Energy::millijoules(300'000)) << "1 to 24";
  Energy sum = point.others + point.unattributed;
  for (const HistoryPart& part : point.parts) sum += part.energy;
  EXPECT_EQ(sum, point.measured);
}

TEST(History, AClosedAccountGoesToTheOthersAndNothingTwice) {
  HistoryKeeper keeper;
  HistoryNode node(1);
  node.spend(0, pod("a"), 1000);
  keeper.add(node.cycle());
  node.spend(0, pod("a"), 20);
  node.spend(0, pod("b"), 30);
  node.close(0, pod("a"));
  node.wait(10s);
  keeper.add(node.cycle());
  EXPECT_EQ(last_point(keeper).measured, Energy::millijoules(50'000));
  EXPECT_EQ(last_point(keeper).others, Energy::millijoules(20'000));
}

TEST(History, AnHourAndNoMore) {
  HistoryKeeper keeper;
  HistoryNode node(2);
  for (int step = 0; step < 500; ++step) {
    keeper.add(node.cycle());
    node.spend(0, pod("p" + std::to_string(step)), 10);
    node.wait(10s);
  }
  const auto history = keeper.history();
  EXPECT_EQ(history->steps.size(), 360u);
  EXPECT_TRUE(std::is_sorted(history->steps.begin(), history->steps.end(),
                             [](const auto& a, const auto& b) { return a->to < b->to; }));
  EXPECT_EQ(shown(keeper)["owners"].size(), 360u) << "owners go with their last point";
}

TEST(History, AReaderKeepsWhatItHas) {
  HistoryKeeper keeper;
  HistoryNode node(1);
  keeper.add(node.cycle());
  node.wait(10s);
  keeper.add(node.cycle());
  const auto held = keeper.history();
  for (int step = 0; step < 400; ++step) {
    node.wait(10s);
    keeper.add(node.cycle());
  }
  EXPECT_EQ(held->steps.size(), 1u);
  EXPECT_EQ(held->steps[0]->points[0].to, 1010s);
}

TEST(History, ALostGpuHasNoPointsAndItsNextOneCoversTheGap) {
  HistoryKeeper keeper;
  HistoryNode node(2);
  keeper.add(node.cycle());
  node.wait(10s);
  node.set_up(1, false);
  for (int i = 0; i < 3; ++i, node.wait(10s)) {
    keeper.add(node.cycle());
    EXPECT_EQ(keeper.history()->steps.back()->points.size(), 1u);
  }
  node.set_up(1, true);
  node.idle(1, 4000);
  keeper.add(node.cycle());
  EXPECT_EQ(last_point(keeper).gpu.text, "GPU-1");
  EXPECT_EQ(last_point(keeper).to - last_point(keeper).from, 40s) << "no peak of 400 W: 4000 J in 40 s";
}

TEST(History, AGpuThatIsGoneKeepsItsPastAndBeginsAnewWhenItIsBack) {
  HistoryKeeper keeper;
  HistoryNode both(2);
  HistoryNode one = both;
  one.remove_last();
  for (HistoryNode* node : {&both, &both, &one, &both, &both}) {
    both.spend(1, pod("a"), 100);
    for (HistoryNode* each : {&both, &one}) each->wait(10s);
    keeper.add(node->cycle());
  }
  const json gpus = shown(keeper)["gpus"];
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0]["points"].size(), 4u);
  EXPECT_EQ(gpus[1]["points"].size(), 2u) << "one before, one after; its first look is a beginning";
}

TEST(History, OtherBooksAreABeginningAndNoPeak) {
  HistoryKeeper keeper;
  HistoryNode node(1);
  node.spend(0, pod("a"), 1000);
  keeper.add(node.cycle());
  node.restart_books();
  node.spend(0, pod("a"), 5);
  node.wait(10s);
  keeper.add(node.cycle());
  EXPECT_TRUE(keeper.history()->steps.empty());
  node.spend(0, pod("a"), 5);
  node.wait(10s);
  keeper.add(node.cycle());
  EXPECT_EQ(last_point(keeper).measured, Energy::millijoules(5000));
}

TEST(History, AClockThatIsSetMovesAllPointsAlike) {
  HistoryKeeper keeper;
  HistoryNode node(1);
  for (int step = 0; step < 4; ++step, node.wait(10s)) keeper.add(node.cycle());
  node.set_wall(1'600'000'000s);
  keeper.add(node.cycle());
  std::vector<double> times;
  const json history = shown(keeper);
  for (const json& point : history["gpus"][0]["points"]) times.push_back(point["to"]);
  EXPECT_THAT(times, ElementsAre(1'599'999'970.0, 1'599'999'980.0, 1'599'999'990.0, 1'600'000'000.0));
}

TEST(History, RareCyclesAreLongSteps) {
  HistoryKeeper keeper;
  HistoryNode node(1);
  for (int step = 0; step < 100; ++step, node.wait(60s)) keeper.add(node.cycle());
  EXPECT_EQ(keeper.history()->steps.size(), 60u);
  EXPECT_EQ(last_point(keeper).to - last_point(keeper).from, 60s);
}

TEST(History, ManyLongNamesMakeItShorterNotLarger) {
  HistoryKeeper keeper;
  HistoryNode node(8);
  std::string padding(200, 'x');
  for (int step = 0; step < 150; ++step, node.wait(10s)) {
    for (size_t gpu = 0; gpu < 8; ++gpu) {
      for (int i = 0; i < 16; ++i) {
        const std::string name = std::to_string(step) + "-" + std::to_string(gpu) + "-" + std::to_string(i);
        node.spend(gpu, pod(name + padding), 10);
        node.close(gpu, pod(std::to_string(step - 1) + "-" + std::to_string(gpu) + "-" + std::to_string(i) + padding));
      }
    }
    keeper.add(node.cycle());
    ASSERT_LE(keeper.bytes(), HistoryKeeper::kMaxBytes);
  }
  EXPECT_GT(keeper.history()->steps.size(), 30u);
  EXPECT_LT(keeper.history()->steps.size(), 120u);
}

}  // namespace
}  // namespace gpuledger::app
