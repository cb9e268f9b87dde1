// SPDX-License-Identifier: Apache-2.0
#include "app/commands/top_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpuledger::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Cycle example() {
  auto description = std::make_shared<DeviceDescription>();
  description->uuid = {"GPU-0"};
  description->model = "NVIDIA H200";
  description->power_limit = Power::watts(700);
  DeviceSample sample;
  sample.description = description;
  sample.up = true;
  sample.power = Power::watts(412.5);
  sample.memory_used = Bytes{64ull << 30};
  Cycle cycle;
  cycle.batch.devices.push_back(sample);
  DeviceAccount device;
  device.description = description;
  device.up = true;
  cycle.ledger.devices.push_back(device);
  for (Pid pid : {11, 12, 13}) {
    ProcessAccount process;
    process.gpu = {"GPU-0"};
    process.identity.key.pid = pid;
    process.identity.name = "p" + std::to_string(pid);
    process.booked.shared = Energy::millijoules(1000'000 - pid * 1000);
    process.memory = Bytes{static_cast<uint64_t>(pid == 12 ? 9 : 1) << 30};
    cycle.ledger.processes.push_back(process);
  }
  return cycle;
}

// What a process drew in a second is its pid in joules.
Cycle a_second_before() {
  Cycle cycle = example();
  cycle.batch.at.steady -= std::chrono::seconds(1);
  for (ProcessAccount& process : cycle.ledger.processes)
    process.booked.shared -= Energy::millijoules(process.identity.key.pid * 1000);
  return cycle;
}
const Cycle kBefore = a_second_before();

std::string all(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// The place of each process among the lines.
std::vector<size_t> places(const std::string& text) {
  return {text.find(" p11\n"), text.find(" p12\n"), text.find(" p13\n")};
}

TEST(TopTable, OrdersByWhatIsAskedFor) {
  TopView view;
  auto at = places(all(write_top(example(), &kBefore, view)));
  EXPECT_LT(at[2], at[1]);
  EXPECT_LT(at[1], at[0]);
  view.order = TopOrder::kMemory;
  at = places(all(write_top(example(), &kBefore, view)));
  EXPECT_LT(at[1], at[0]);
  EXPECT_LT(at[0], at[2]);
  view.order = TopOrder::kEnergy;
  at = places(all(write_top(example(), &kBefore, view)));
  EXPECT_LT(at[0], at[1]);
  EXPECT_LT(at[1], at[2]);
}

TEST(TopTable, WattsAreJoulesOverTheStep) {
  EXPECT_THAT(all(write_top(example(), &kBefore, {})), HasSubstr(" 13.0 "));
  EXPECT_THAT(all(write_top(example(), nullptr, {})), Not(HasSubstr("13.0")));
  Cycle two_seconds = kBefore;
  two_seconds.batch.at.steady -= std::chrono::seconds(1);
  EXPECT_THAT(all(write_top(example(), &two_seconds, {})), HasSubstr(" 6.5 "));
  Cycle shared = example();
  shared.ledger.processes[2].standard_error_joules = 98.7;
  EXPECT_THAT(all(write_top(shared, &kBefore, {})), HasSubstr("±1.3"));
}

TEST(TopTable, AnErrorAsLargeAsTheWattsIsNoNumber) {
  const std::string before = write_top(example(), &kBefore, {}).back();
  Cycle cycle = example();
  ProcessAccount& process = cycle.ledger.processes[0];
  process.standard_error_joules = 0.99 * process.booked.total().joules();
  EXPECT_THAT(write_top(cycle, &kBefore, {}).back(), HasSubstr(" 11.0   ±10.9 "));
  for (const double part : {1.0, 1.5}) {
    process.standard_error_joules = part * process.booked.total().joules();
    const std::string line = write_top(cycle, &kBefore, {}).back();
    EXPECT_THAT(line, HasSubstr(" not known yet "));
    EXPECT_THAT(line, Not(HasSubstr("11.0")));
    EXPECT_EQ(line.size(), before.size()) << "the columns stay in line";
  }
  EXPECT_THAT(all(write_top(cycle, nullptr, {})), Not(HasSubstr("not known"))) << "no watts yet at all";
  EXPECT_THAT(all(write_top(cycle, &cycle, {})), Not(HasSubstr("not known"))) << "nothing drawn, that is known";
  process.active = false;
  EXPECT_THAT(all(write_top(cycle, &kBefore, {})), Not(HasSubstr("not known")));
}

TEST(TopTable, WhoEndedComesLastWithoutWatts) {
  Cycle cycle = example();
  cycle.ledger.processes[2].active = false;
  const std::vector<std::string> lines = write_top(cycle, &kBefore, {});
  EXPECT_THAT(lines.back(), HasSubstr("ended"));
  EXPECT_THAT(lines.back(), Not(HasSubstr("13.0")));
}

TEST(TopTable, FitsTheWindow) {
  Cycle cycle = example();
  cycle.ledger.processes[0].identity.name = std::string(150, 'x') + "ü";
  cycle.ledger.processes[1].identity.owner = {
      OwnerKind::kPod, "n", std::string(100, 'y'), "", "", "", "", "", "", "", ""};
  for (size_t columns : {20u, 79u, 100u}) {
    TopView view;
    view.columns = columns;
    view.rows = 7;
    const auto lines = write_top(cycle, &kBefore, view);
    EXPECT_EQ(lines.size(), 7u);
    for (const std::string& line : lines) EXPECT_LE(line.size(), columns + 2) << line;
  }
}

TEST(TopTable, NamesCannotMoveTheCursor) {
  Cycle cycle = example();
  cycle.ledger.processes[0].identity.name = "a\x1b[2Jb\r\nc";
  cycle.sources.push_back({"docker", false, "no\x1b]0;x\x07 socket", {}});
  const std::string text = all(write_top(cycle, &kBefore, {}));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("! docker: no]0;x socket"));
}

TEST(TopTable, GpuThatDoesNotAnswer) {
  Cycle cycle = example();
  cycle.batch.devices.front().up = false;
  EXPECT_THAT(all(write_top(cycle, &kBefore, {})), HasSubstr("does not answer"));
}

}  // namespace
}  // namespace gpuledger::app
