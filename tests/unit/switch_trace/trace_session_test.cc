// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/trace_session.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "simulated_driver.h"
#include "support/manual_clock.h"

namespace gpuledger::switch_trace {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

class Session : public ::testing::Test {
 protected:
  Status open_and_start(std::unique_ptr<TraceSession>& session) {
    GL_TRY(opened, TraceSession::open(driver_, *parse_bus_address(kBusAddress)));
    session = std::move(opened);
    return session->start();
  }
  size_t calls_of_a_start() {
    std::unique_ptr<TraceSession> session;
    EXPECT_TRUE(open_and_start(session).ok());
    return driver_->driver.calls();
  }

  ManualClock clock_;
  std::shared_ptr<SimulatedDriver> driver_ = std::make_shared<SimulatedDriver>(clock_);
};

TEST_F(Session, OpensReadsAndLeavesNothingBehind) {
  {
    std::unique_ptr<TraceSession> session;
    const Status started = open_and_start(session);
    ASSERT_TRUE(started.ok()) << started.error().message;
    EXPECT_TRUE(driver_->driver.traced(kMinor));
    driver_->put(kTagStart, 7, clock_.now().steady);
    std::vector<SwitchRecord> records;
    ASSERT_TRUE(session->ring().read(records).ok());
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].pid, 7u);
    EXPECT_EQ(session->branch().major, 580u);
  }
  EXPECT_FALSE(driver_->driver.traced(kMinor));
  EXPECT_TRUE(driver_->nothing_left());
}

TEST_F(Session, SendsNoControlThatChangesASetting) {
  std::unique_ptr<TraceSession> session;
  ASSERT_TRUE(open_and_start(session).ok());
  ASSERT_TRUE(session->read_clocks(clock_).ok());
  ASSERT_TRUE(session->flush().ok());
  session.reset();
  EXPECT_THAT(driver_->driver.controls(), Each(AnyOf(kControlIdOfGpu, kControlGpuTime, kControlBind, kControlEnable,
                                                     kControlMoveGet, kControlFlush)));
}

// The n-th call fails, for every n there is, with every error there is.
TEST_F(Session, AnyStepMayFail) {
  const size_t steps = calls_of_a_start();
  ASSERT_GT(steps, 15u);
  std::vector<sim::DoorDriver::Fault> faults;
  for (const int error : {EACCES, ENOENT, EIO, ENOMEM}) faults.push_back({0, error, 0});
  for (const uint32_t status : {0x1b, 0x1f, 0x22, 0x51, 0x56, 0x0f, 0x10}) faults.push_back({0, 0, status});
  for (sim::DoorDriver::Fault fault : faults) {
    for (fault.call = 0; fault.call < steps; ++fault.call) {
      driver_->driver.fail(fault);
      std::unique_ptr<TraceSession> session;
      const Status started = open_and_start(session);
      // Less memory is asked for where that much is not to be had.
      if (started.ok()) {
        EXPECT_LT(session->ring().size(), 16384u) << fault.call;
      } else {
        EXPECT_FALSE(started.error().message.empty());
      }
      session.reset();
      EXPECT_TRUE(driver_->nothing_left())
          << "call " << fault.call << " errno " << fault.error << " status " << fault.status;
    }
  }
}

TEST_F(Session, SaysWhyABindIsRefused) {
  const std::pair<uint32_t, const char*> reasons[] = {
      {kBindNoReason, "not supported (0x56)"}, {kBindGpuTooOld, "too old"},
      {kBindOffOnThisGpu, "switched off"},     {kBindOff, "MIG"},
      {kBindNeedsAdmin, "administrators"},     {kBindNeedsCapability, "virtual GPU"},
  };
  for (const auto& [reason, words] : reasons) {
    driver_->driver.refuse_bind(kMinor, kRmNotSupported, reason);
    std::unique_ptr<TraceSession> session;
    const Status started = open_and_start(session);
    ASSERT_FALSE(started.ok());
    EXPECT_THAT(started.error().message, HasSubstr(words));
    session.reset();
    EXPECT_TRUE(driver_->nothing_left());
  }
}

TEST_F(Session, RefusesADriverItDoesNotKnow) {
  for (const char* version : {"470.256.02", "525.147.05", "530.30.02", "600.10", "580", "", "x"}) {
    auto driver = std::make_shared<SimulatedDriver>(clock_, version);
    const auto opened = TraceSession::open(driver, *parse_bus_address(kBusAddress));
    ASSERT_FALSE(opened.ok()) << version;
    EXPECT_EQ(opened.error().code, Code::kNotSupported);
    EXPECT_TRUE(driver->nothing_left());
    EXPECT_EQ(driver->driver.calls(), 2u) << "it must be asked for nothing but its version";
  }
}

TEST_F(Session, KnowsTheBranches) {
  for (const DriverBranch& branch : known_branches()) {
    auto driver = std::make_shared<SimulatedDriver>(clock_, std::to_string(branch.major) + ".10.01");
    auto opened = TraceSession::open(driver, *parse_bus_address(kBusAddress));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_TRUE((*opened)->start().ok());
    EXPECT_EQ((*opened)->branch().delivery > std::chrono::seconds(1), branch.major < 545);
  }
}

TEST_F(Session, ATraceCanBeEndedAndBegunAgain) {
  std::unique_ptr<TraceSession> session;
  ASSERT_TRUE(open_and_start(session).ok());
  std::vector<SwitchRecord> records;
  for (int burst = 1; burst <= 3; ++burst) {
    for (int i = 0; i < 100; ++i) driver_->put(kTagStart, 7, clock_.now().steady);
    session->stop();
    EXPECT_FALSE(driver_->driver.traced(kMinor));
    ASSERT_TRUE(session->start().ok());
    records.clear();
    ASSERT_TRUE(session->ring().read(records).ok());
    EXPECT_TRUE(records.empty()) << "what the trace before left";
    EXPECT_EQ(session->ring().not_given_back(), 0u);
  }
}

TEST_F(Session, TwoReadersDoNotDisturbEachOther) {
  std::unique_ptr<TraceSession> first, second;
  ASSERT_TRUE(open_and_start(first).ok());
  driver_->put(kTagStart, 7, clock_.now().steady);
  ASSERT_TRUE(open_and_start(second).ok());
  driver_->put(kTagEnd, 7, clock_.now().steady);
  std::vector<SwitchRecord> of_first, of_second;
  ASSERT_TRUE(first->ring().read(of_first).ok());
  ASSERT_TRUE(second->ring().read(of_second).ok());
  EXPECT_EQ(of_first.size(), 2u);
  EXPECT_EQ(of_second.size(), 1u);
  first.reset();
  driver_->put(kTagStart, 8, clock_.now().steady);
  of_second.clear();
  ASSERT_TRUE(second->ring().read(of_second).ok());
  EXPECT_EQ(of_second.size(), 1u);
}

TEST(BusAddress, IsReadAsNvmlAndTheKernelWriteIt) {
  EXPECT_EQ(*parse_bus_address("00000000:3B:00.0"), (BusAddress{0, 0x3b, 0}));
  EXPECT_EQ(*parse_bus_address("00000001:c1:1f.0"), (BusAddress{1, 0xc1, 0x1f}));
  for (const char* wrong : {"", "3B:00.0", "0:3B", "x:y:z", "0:3B:00/0"})
    EXPECT_FALSE(parse_bus_address(wrong).ok()) << wrong;
}

class Ring : public ::testing::Test {
 protected:
  void put(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      records_[header_.record_put].context = next_++;
      header_.record_put = (header_.record_put + 1) % 8;
    }
  }
  std::vector<uint32_t> read() {
    std::vector<SwitchRecord> records;
    EXPECT_TRUE(ring_.read(records).ok());
    std::vector<uint32_t> contexts;
    for (const SwitchRecord& record : records) contexts.push_back(record.context);
    return contexts;
  }

  RingHeader header_{};
  SwitchRecord records_[8]{};
  uint32_t next_ = 0;
  SwitchRing ring_{&header_, records_, 8};
};

TEST_F(Ring, GoesRound) {
  EXPECT_THAT(read(), ::testing::IsEmpty());
  put(5);
  EXPECT_THAT(read(), ::testing::ElementsAre(0, 1, 2, 3, 4));
  put(7);
  EXPECT_THAT(read(), ::testing::ElementsAre(5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(ring_.not_given_back(), 4u);  // of eight it holds seven
  ring_.note_given_back();
  EXPECT_EQ(ring_.not_given_back(), 0u);
}

TEST_F(Ring, BeginsWhereItIsFound) {
  put(6);
  ASSERT_TRUE(ring_.skip_all().ok());
  put(3);
  EXPECT_THAT(read(), ::testing::ElementsAre(6, 7, 8));
}

TEST_F(Ring, AnEndOutsideOfItIsAnError) {
  header_.record_put = 8;
  std::vector<SwitchRecord> records;
  EXPECT_FALSE(ring_.read(records).ok());
  EXPECT_FALSE(ring_.skip_all().ok());
  EXPECT_TRUE(records.empty());
}

}  // namespace
}  // namespace gpuledger::switch_trace
