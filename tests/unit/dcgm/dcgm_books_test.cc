// SPDX-License-Identifier: Apache-2.0
// What the lists of DCGM alone are worth in the books.
#include "attribute/books/engine.h"
#include "engine_fixture.h"
#include "sample/dcgm/dcgm_engine_thread.h"
#include "support/laws.h"

namespace gpuledger::dcgm {
namespace {

class DcgmBooks : public EngineTest {
 protected:
  void open(Nanoseconds interval) {
    ReaderOptions options;
    options.whole = true;
    options.interval = rules_.sample_interval = interval;
    engine_ = *EngineThread::start(load(), Where{}, options, clock_);
    engine_->wait_for_first(minutes(1));
    books_ = std::make_unique<attribute::Engine>(rules_);
  }
  void TearDown() override {
    engine_.reset();
    EngineTest::TearDown();
  }

  const Ledger& step(Nanoseconds time) {
    pass(time);
    engine_->ask({});
    engine_->wait(minutes(1));
    const Findings found = engine_->take();
    EXPECT_TRUE(found.view);
    SampleBatch batch;
    batch.processes_scanned = true;
    batch.at = found.view->at;
    batch.devices = found.view->devices;
    IdentityMap map;
    for (const ProcessSample& process : batch.devices.at(0).processes) {
      if (!process.listed) continue;  // it is not in /proc
      ProcessIdentity& identity = map.by_pid[process.pid];
      identity.key = {process.pid, process.pid};
    }
    ledger_ = books_->advance(batch, map);
    testing::expect_balanced(ledger_);
    return ledger_;
  }
  double joules(Pid pid) const {
    double sum = 0;
    for (const ProcessAccount& account : ledger_.processes) {
      if (account.identity.key.pid == pid) sum += account.booked.total().joules();
    }
    return sum;
  }
  double unseen() const { return ledger_.devices.at(0).unattributed[static_cast<size_t>(Reason::kUnseen)].joules(); }

 private:
  BookingRules rules_;
  std::unique_ptr<EngineThread> engine_;
  std::unique_ptr<attribute::Engine> books_;
  Ledger ledger_;
};

TEST_F(DcgmBooks, ThoseWhoTakeTurnsPayByTime) {
  constexpr int kJobs = 6;
  std::string scenario = "gpus: [{model: A100-80GB}]\nprocesses:\n";
  for (int i = 0; i < kJobs; ++i) {
    scenario += "  - {pid: " + std::to_string(4101 + i) +
                ", gpus: 0, memory: 4GiB, load: gemm, start: " + std::to_string(2 + 2.37 * i) +
                ", end: " + std::to_string(4.27 + 2.37 * i) + "}\n";
  }
  node(scenario);
  open(std::chrono::seconds(1));
  double measured = 0;
  for (int i = 0; i < 19; ++i) measured = step(std::chrono::seconds(1)).devices.at(0).measured.joules();
  EXPECT_LT(unseen(), 0.04 * measured);
  // They all did the same.
  for (Pid pid = 4101; pid < 4101 + kJobs; ++pid) {
    EXPECT_GT(joules(pid), 100) << pid;
    EXPECT_NEAR(joules(pid), joules(4101), 0.2 * joules(4101)) << pid;
  }
}

// Also after a late look, when the next one comes soon.
TEST_F(DcgmBooks, NobodyIsChargedForTwo) {
  node(R"(
gpus: [{model: A100-80GB}]
processes:
  - {pid: 4101, gpus: 0, memory: 40GiB, load: gemm}
  - {pid: 4102, gpus: 0, memory: 20GiB, load: decode}
)");
  open(milliseconds(200));
  for (const int ms : {200, 320, 80, 200, 100, 50, 350, 20, 200}) step(milliseconds(ms));
  EXPECT_EQ(joules(4101) + joules(4102), 0);
  EXPECT_GT(unseen(), 100);
}

}  // namespace
}  // namespace gpuledger::dcgm
