#include "attribute/state_text.h"

#include <gtest/gtest.h>

#include <chrono>

#include "attribute/engine.h"
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
  EXPECT_EQ(device.signatures.size(), state.devices[0].signatures.size());
  EXPECT_FALSE(device.signatures.empty());
  EXPECT_GT(device.idle_floor.windows, 0u);
  const AccountState& slice = parsed->devices.at(1).accounts.at(0);
  EXPECT_EQ(slice.mig->profile, "1g.18gb");
  EXPECT_EQ(slice.mig_id, (MigId{1, 0}));
}

TEST(StateText, WhatWasLearnedComesBackWhole) {
  Signature::Memory memory;
  memory.level = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
  memory.revised_level = {0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1};
  memory.missed = 17.5;
  memory.ceiling = 0.25;
  EngineState state;
  state.devices.emplace_back().signatures[{7, 70}] = memory;
  const auto parsed = parse_state(write_state(state));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const Signature::Memory& back = parsed->devices.at(0).signatures.at({7, 70});
  EXPECT_EQ(back.level, memory.level);
  EXPECT_EQ(back.revised_level, memory.revised_level);
  EXPECT_EQ(back.missed, 17.5);
  EXPECT_EQ(back.ceiling, 0.25);
  const Signature::Memory through = Signature(back).memory();
  EXPECT_EQ(through.revised_level, memory.revised_level);
  EXPECT_EQ(through.missed, 17.5);
  EXPECT_EQ(through.ceiling, 0.25);
}

TEST(StateText, FilesFromBeforeAllOfItWasKeptAreRead) {
  const std::string body =
      R"({"number":1,"devices":[{"uuid":"GPU-0","boot_id":"b","steady_ns":1,"wall_ns":1,"measured_uj":0,)"
      R"("unattributed_uj":[0,0,0,0,0],"xids":[],"owners":[],"processes":[],"signatures":[{"pid":7,"start_ticks":70,)"
      R"("level":[1,0,0,0,0,0,0],"busy":1,"peak":1,"trust":5,"seen_alone":true}]}]})";
  const auto parsed = parse_state(state_header(body) + body);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const Signature::Memory& memory = parsed->devices.at(0).signatures.at({7, 70});
  EXPECT_EQ(memory.trust, 5);
  EXPECT_EQ(memory.missed, 0);
  EXPECT_EQ(memory.ceiling, 1);
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
      R"("measured_uj":4,"unattributed_uj":[1,0,2,0,0],)",    // does not balance
      R"("measured_uj":1,"unattributed_uj":[2,-1,0,0,0],)",   // negative
      R"("measured_uj":3,"unattributed_uj":[1,2],)",          // too few
      R"("measured_uj":3.0,"unattributed_uj":[1,0,2,0,0],)",  // no integer
      R"("measured_uj":9223372036854775807,"unattributed_uj":[9223372036854775807,0,0,0,0],)",
      R"("measured_uj":18446744073709551615,"unattributed_uj":[0,0,0,0,0],)",
  };
  for (const std::string& sums : bad_sums) EXPECT_FALSE(parse_state(device(sums)).ok()) << sums;
}

TEST(StateText, UnknownFieldsArePassedOver) {
  const auto state = parse_state(with_header(R"({"number":7,"mood":{"good":[true]},"devices":[]})"));
  ASSERT_TRUE(state.ok()) << state.error().message;
  EXPECT_EQ(state->number, 7u);
}

TEST(StateText, OtherVersionsAreNamed) {
  const std::string text = write_state({});
  for (const char* version : {"2", "17", "99999999999"}) {
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
