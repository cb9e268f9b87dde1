// SPDX-License-Identifier: Apache-2.0
#include "attribute/state/state_text.h"

#include <gtest/gtest.h>

#include <chrono>

#include "attribute/books/engine.h"
#include "support/batch_builder.h"

namespace gpuledger::attribute {
namespace {

using testing::BatchBuilder;

// A state with something in every field: MIG, MPS, pods, odd names, somebody gone, what was learned.
EngineState rich_state() {
  Engine engine((BookingRules()));
  engine.restore({}, "boot-1");
  for (int i = 0; i < 40; ++i) {
    BatchBuilder batch(i);
    batch.gpu(0, 1'000'000 + i * 400'000);
    if (i > 5) batch.process(1, 0.7, 0, testing::pod_owner("train"));
    if (i > 20) batch.process(2, 0.2);
    if (i > 25 && i < 30) batch.process(3, 0.1);
    if (i > 20) batch.identity(2).name = std::string("odd \"\\\n\x01\xff\xc3\xa9 name", 17);
    if (i == 7) batch.device().xids = {79, 13};
    batch.gpu(1, 5 + i * 90'000);
    MigInstance slice{"MIG-1", {1, 0}, "1g.18gb", 1, {}, {}};
    batch.description().mig = {slice};
    batch.device().utilization = UtilizationState::kUnsupported;
    batch.process(4, 0);
    batch.last().mig = slice.id;
    (void)engine.advance(batch.batch(), batch.identities());
  }
  return engine.state();
}

TEST(StateText, ComesBackAsItWas) {
  const EngineState state = rich_state();
  const std::string text = write_state(state);
  const auto parsed = parse_state(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  // Text is exact (doubles are written in full), so equal texts are equal states.
  EXPECT_EQ(write_state(*parsed), text);

  const DeviceState& device = parsed->devices.at(0);
  EXPECT_EQ(parsed->number, 40u);
  EXPECT_EQ(device.boot_id, "boot-1");
  EXPECT_EQ(device.counter, state.devices[0].counter);
  EXPECT_EQ(device.measured, Energy::millijoules(39 * 400'000));
  EXPECT_EQ(device.xids, (std::map<uint64_t, uint64_t>{{13, 1}, {79, 1}}));
  EXPECT_EQ(device.xid_seen, state.devices[0].xid_seen);
  EXPECT_EQ(device.xid_seen.size(), 2u);
  ASSERT_EQ(device.accounts.size(), 3u);
  EXPECT_EQ(device.accounts[0].identity.owner, testing::pod_owner("train"));
  EXPECT_EQ(device.accounts[1].identity.name, state.devices[0].accounts[1].identity.name);
  EXPECT_TRUE(device.accounts[2].gone_for);
  EXPECT_EQ(device.learned.signatures.size(), state.devices[0].learned.signatures.size());
  EXPECT_FALSE(device.learned.signatures.empty());
  EXPECT_FALSE(device.learned.kin.empty());
  EXPECT_GT(device.idle_floor.windows, 0u);
  const AccountState& slice = parsed->devices.at(1).accounts.at(0);
  EXPECT_EQ(slice.mig->profile, "1g.18gb");
  EXPECT_EQ(slice.mig_id, (MigId{1, 0}));
}

TEST(StateText, WhatCameLaterComesBackAndMayBeMissing) {
  EngineState state;
  DeviceState& device = state.devices.emplace_back();
  device.counted_before = Energy::millijoules(5'000'000);
  device.opening = {std::chrono::milliseconds(1'700'000'000'123), 7};
  device.self_check = {12, 34.5, 678.25};
  Owner unknown;
  unknown.kind = OwnerKind::kUnknown;
  device.owners.push_back({unknown, {}, 0});
  AccountState& account = device.accounts.emplace_back();
  account.identity.owner = unknown;
  account.identity.owner_inferred = true;
  const std::string text = write_state(state);
  const auto parsed = parse_state(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->devices[0].counted_before, Energy::millijoules(5'000'000));
  ASSERT_TRUE(parsed->devices[0].opening);
  EXPECT_EQ(parsed->devices[0].opening->at, std::chrono::milliseconds(1'700'000'000'123));
  EXPECT_EQ(parsed->devices[0].opening->run, 7u);
  EXPECT_EQ(parsed->devices[0].self_check.comparisons, 12u);
  EXPECT_EQ(parsed->devices[0].self_check.wrong_joules, 34.5);
  EXPECT_EQ(parsed->devices[0].self_check.compared_joules, 678.25);
  EXPECT_EQ(parsed->devices[0].owners.at(0).owner, unknown);
  EXPECT_TRUE(parsed->devices[0].accounts.at(0).identity.owner_inferred);
  device.counted_before.reset();
  device.opening.reset();
  device.self_check = {};
  account.identity.owner_inferred = false;
  const std::string older = write_state(state);
  EXPECT_EQ(older.find("counted_before"), older.npos);
  const auto from_older = parse_state(older);
  ASSERT_TRUE(from_older.ok());
  EXPECT_FALSE(from_older->devices[0].counted_before);
  EXPECT_EQ(older.find("opening"), older.npos);
  EXPECT_FALSE(from_older->devices[0].opening);
  EXPECT_EQ(older.find("self_check"), older.npos);
  EXPECT_EQ(from_older->devices[0].self_check.comparisons, 0u);
}

TEST(StateText, WhatWasLearnedComesBackWhole) {
  SignatureMemory memory;
  for (size_t i = 0; i < memory.precision.size(); ++i) memory.precision[i] = 0.1 * static_cast<double>(i);
  memory.shift = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
  memory.share = 0.25;
  EngineState state;
  EstimatorMemory& learned = state.devices.emplace_back().learned;
  learned.signatures[{7, 70}] = memory;
  learned.kin[18446744073709551615ull] = memory;
  state.devices[0].owners.push_back({testing::pod_owner("train"), {}, 12.5});
  const auto parsed = parse_state(write_state(state));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const EstimatorMemory& back = parsed->devices.at(0).learned;
  EXPECT_EQ(back.signatures.at({7, 70}).precision, memory.precision);
  EXPECT_EQ(back.signatures.at({7, 70}).shift, memory.shift);
  EXPECT_EQ(back.signatures.at({7, 70}).share, 0.25);
  EXPECT_EQ(back.kin.at(18446744073709551615ull).shift, memory.shift);
  EXPECT_EQ(parsed->devices[0].owners.at(0).error, 12.5);
}

TEST(StateText, ExtremeValuesComeBack) {
  EngineState state;
  DeviceState& device = state.devices.emplace_back();
  const Energy most = Energy::microjoules(int64_t{1} << 60);
  constexpr auto kIn2100 = std::chrono::seconds(4'102'444'800);
  device.read_at = {std::chrono::hours(24 * 365 * 30), kIn2100};
  device.counter = device.measured = device.unattributed[0] = most;
  device.doubted = {Energy(), most, 2, std::chrono::seconds(7)};
  device.xids[~0ull] = ~0ull;
  device.xid_seen[~0ull] = kIn2100;
  const std::string text = write_state(state);
  const auto parsed = parse_state(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(write_state(*parsed), text);
  EXPECT_EQ(parsed->devices[0].doubted->last, most);
  EXPECT_EQ(parsed->devices[0].doubted->readings, 2u);
}

TEST(StateText, ANegativeZeroIsZero) {
  EngineState state;
  state.devices.emplace_back().learned.kin[7].precision[0] = -0.0;
  const std::string text = write_state(state);
  const auto parsed = parse_state(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(write_state(*parsed), text);
}

TEST(StateText, FilesOfTheFirstVersionAreRead) {
  const std::string body =
      R"({"number":1,"devices":[{"uuid":"GPU-0","boot_id":"b","steady_ns":1,"wall_ns":1,"measured_uj":5,)"
      R"("unattributed_uj":[0,0,0,0,0],"xids":[],"owners":[{"owner":{"kind":"host"},"booked":[5,0]}],)"
      R"("processes":[{"pid":7,"start_ticks":70,"name":"a","owner":{"kind":"host"},"booked":[5,0],"static_uj":0,)"
      R"("lottery_variance":0,"intensity_error":1,"fair_joules":4.5,"doubt_joules":1.5}],)"
      R"("signatures":[{"pid":7,"start_ticks":70,"level":[1,0,0,0,0,0,0],"busy":1,"peak":1,"trust":5}]}]})";
  const auto parsed = parse_state(state_header(body, 1) + body);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const DeviceState& device = parsed->devices.at(0);
  EXPECT_EQ(device.accounts.at(0).claimed, 4.5);
  EXPECT_EQ(device.accounts.at(0).error, 1.5);
  EXPECT_EQ(device.owners.at(0).error, 0);
  EXPECT_TRUE(device.learned.signatures.empty()) << "of another kind: learned anew";
}

constexpr const char* kSecondVersion =
    R"({"number":9,"devices":[{"uuid":"GPU-0","boot_id":"b","steady_ns":1,"wall_ns":1,"measured_uj":12,)"
    R"("unattributed_uj":[0,0,0,0,7],"xids":[],"owners":[{"owner":{"kind":"pod","namespace":"ml","pod":"a"},)"
    R"("booked":[5,0,3],"error_joules":0.5}],"processes":[],"signatures":[]CLOSED}]})";

std::string second_version(const std::string& more) {
  std::string body = kSecondVersion;
  return body.replace(body.find("CLOSED"), 6, more);
}

TEST(StateText, FilesOfTheSecondVersionAreRead) {
  const std::string body = second_version("");
  const auto parsed = parse_state(state_header(body, 2) + body);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->devices.at(0).owners.at(0).booked.total(), Energy::microjoules(5));
  EXPECT_FALSE(parsed->devices[0].owners[0].gone_for) << "nobody wrote it down: its time begins now";
  EXPECT_TRUE(parsed->devices[0].closed.empty());
  EXPECT_FALSE(parsed->devices[0].opening);
}

TEST(StateText, ClosedAccountsArePartOfTheBalance) {
  const std::string too_much = second_version(R"(,"closed":[{"kind":"pod","namespace":"ml","booked":[0,1]}])");
  EXPECT_FALSE(parse_state(state_header(too_much) + too_much).ok());
  std::string body = too_much;
  body.replace(body.find("\"measured_uj\":12"), 16, "\"measured_uj\":13");
  const auto parsed = parse_state(state_header(body) + body);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->devices.at(0).closed.at(0).name_space, "ml");
  EXPECT_EQ(parsed->devices[0].closed[0].booked.shared, Energy::microjoules(1));
  EXPECT_NE(write_state(*parsed).find(R"("closed":[{"kind":"pod","namespace":"ml","booked":[0,1]})"),
            std::string::npos);
}

TEST(StateText, NoPrefixIsAccepted) {
  const std::string text = write_state(rich_state());
  ASSERT_TRUE(parse_state(text).ok());
  for (size_t length = 0; length < text.size(); ++length) {
    ASSERT_FALSE(parse_state(std::string_view(text).substr(0, length)).ok()) << length << " bytes";
  }
  EXPECT_FALSE(parse_state(text + "x").ok());
}

TEST(StateText, NoChangedByteIsAccepted) {
  const std::string text = write_state(rich_state());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    ASSERT_FALSE(parse_state(changed).ok()) << "byte " << at;
  }
}

std::string with_header(const std::string& body) {
  return state_header(body) + body;
}

// What a checksum cannot catch: a body that somebody wrote on purpose.
TEST(StateText, BodiesThatAreNoBooksAreRefused) {
  const std::string device_begin =
      R"({"number":1,"devices":[{"uuid":"GPU-0","boot_id":"b","steady_ns":1,"wall_ns":1,"counter_uj":5,"xids":[],)";
  const std::string end = R"("owners":[],"processes":[],"signatures":[]}]})";
  const auto device = [&](const std::string& sums) { return with_header(device_begin + sums + end); };
  EXPECT_TRUE(parse_state(device(R"("measured_uj":3,"unattributed_uj":[1,0,2,0,0],)")).ok());
  const auto opening = [&](const std::string& value) {
    return device(R"("measured_uj":0,"unattributed_uj":[0,0,0,0,0],"opening":)" + value + ",");
  };
  EXPECT_TRUE(parse_state(opening("[1700000000123000000,1]")).ok());

  const std::string bad[] = {
      "",
      "null",
      "[]",
      "{}",
      "\xff",
      R"({"number":1})",
      R"({"number":-1,"devices":[]})",
      R"({"number":1,"devices":[7]})",
      R"({"number":1,"devices":{"a":{}}})",
      std::string(100'000, '['),
  };
  for (const std::string& body : bad) EXPECT_FALSE(parse_state(with_header(body)).ok()) << body.substr(0, 60);
  const std::string bad_sums[] = {
      R"("doubted":[9,5,2],"measured_uj":3,"unattributed_uj":[1,0,2,0,0],)",  // fell
      R"("measured_uj":4,"unattributed_uj":[1,0,2,0,0],)",                    // does not balance
      R"("measured_uj":1,"unattributed_uj":[2,-1,0,0,0],)",                   // negative
      R"("measured_uj":3,"unattributed_uj":[1,2],)",                          // too few
      R"("measured_uj":3.0,"unattributed_uj":[1,0,2,0,0],)",                  // no integer
      R"("measured_uj":9223372036854775807,"unattributed_uj":[9223372036854775807,0,0,0,0],)",
      R"("measured_uj":18446744073709551615,"unattributed_uj":[0,0,0,0,0],)",
  };
  for (const std::string& sums : bad_sums) EXPECT_FALSE(parse_state(device(sums)).ok()) << sums;
  const std::string bad_openings[] = {
      "null",
      "7",
      "{}",
      "[]",
      "[5]",
      "[5,0]",
      "[5,-1]",
      "[5,1.5]",
      R"([5,"2"])",
      "[1.5,1]",
      R"(["1",1])",
      "[null,1]",
      "[5,1000000001]",
      "[5,18446744073709551615]",
      "[9223372036854775807,1]",
      "[-9223372036854775808,1]",
  };
  for (const std::string& value : bad_openings) EXPECT_FALSE(parse_state(opening(value)).ok()) << value;
}

TEST(StateText, UnknownFieldsArePassedOver) {
  const auto state = parse_state(with_header(R"({"number":7,"mood":{"good":[true]},"devices":[]})"));
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_EQ(state->number, 7u);
}

TEST(StateText, OtherVersionsAreNamed) {
  const std::string text = write_state({});
  for (const char* version : {"4", "17", "99999999999"}) {
    const auto newer = parse_state("gpu-ledger-state " + std::string(version) + text.substr(text.find(" crc32")));
    ASSERT_FALSE(newer.ok());
    EXPECT_NE(newer.error().message.find("version " + std::string(version)), std::string::npos)
        << newer.error().message;
  }
  for (const char* version : {"0", "-1", "x", ""}) {
    EXPECT_FALSE(parse_state("gpu-ledger-state " + std::string(version) + text.substr(text.find(" crc32"))).ok());
  }
}

}  // namespace
}  // namespace gpuledger::attribute
