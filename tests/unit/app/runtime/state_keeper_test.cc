// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/state_keeper.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "app/runtime/state_file.h"
#include "attribute/state/state_text.h"
#include "base/file.h"
#include "support/manual_clock.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr Nanoseconds kPatience = std::chrono::minutes(5);

class Keeper : public ::testing::Test {
 protected:
  Keeper() {
    std::string pattern = (fs::temp_directory_path() / "gpu-ledger-keeper-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ + "/state";
    auto opened = StateKeeper::open(file_, 0600, clock_);
    EXPECT_TRUE(opened.ok());
    keeper_ = std::move(*opened);
  }
  ~Keeper() override {
    keeper_.reset();
    fs::remove_all(folder_);
  }

  // Books of one GPU that draws so much and charges nobody.
  static attribute::EngineState books(uint64_t number, int64_t microjoules) {
    attribute::EngineState state{.number = number, .devices = {}};
    attribute::DeviceState& device = state.devices.emplace_back();
    device.measured = device.unattributed[0] = Energy::microjoules(microjoules);
    return state;
  }
  uint64_t number_on_disk() const { return read_state_files(file_, 1'700'000'000).value_or({}).state.number; }

  ManualClock clock_;
  std::string folder_;
  std::string file_;
  std::unique_ptr<StateKeeper> keeper_;
};

constexpr int64_t kTooMuch = INT64_MAX;

TEST_F(Keeper, WhatCannotBeReadBackDoesNotReplaceWhatCan) {
  keeper_->keep(books(1, 5), seconds(0));
  EXPECT_TRUE(keeper_->health().up);
  keeper_->keep(books(2, kTooMuch), seconds(20));
  const SourceHealth health = keeper_->health();
  EXPECT_FALSE(health.up);
  EXPECT_EQ(health.errors.at(StateKeeper::kUnreadable), 1u);
  EXPECT_NE(health.reason.find("a count is too high"), std::string::npos) << health.reason;
  EXPECT_EQ(number_on_disk(), 1u);
  keeper_->keep(books(3, kTooMuch), seconds(21));
  EXPECT_TRUE(keeper_->finish(kPatience));
  EXPECT_EQ(number_on_disk(), 1u);
  EXPECT_FALSE(fs::exists(file_ + ".broken-1700000000"));
}

TEST_F(Keeper, ItIsWrittenAgainWhenItCanBeRead) {
  keeper_->keep(books(1, kTooMuch), seconds(0));
  EXPECT_EQ(number_on_disk(), 0u);
  keeper_->keep(books(2, 5), seconds(20));
  EXPECT_TRUE(keeper_->health().up);
  EXPECT_TRUE(keeper_->finish(kPatience));
  EXPECT_EQ(number_on_disk(), 2u);
}

TEST_F(Keeper, TheLastStateIsLookedAtToo) {
  keeper_->keep(books(1, 5), seconds(0));
  keeper_->keep(books(2, kTooMuch), seconds(1));  // not yet looked at
  EXPECT_TRUE(keeper_->finish(kPatience));
  EXPECT_EQ(number_on_disk(), 1u);
}

}  // namespace
}  // namespace gpuledger::app
