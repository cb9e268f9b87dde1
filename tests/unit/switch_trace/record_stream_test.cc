// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/record_stream.h"

#include <gmock/gmock.h>

#include <limits>

namespace gpuledger::switch_trace {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr Nanoseconds kRecordStart = seconds(1'000'000);

class Stream : public ::testing::Test {
 protected:
  Stream() {
    EXPECT_TRUE(clock_.compare({kRecordStart, seconds(50), Nanoseconds(0)}));
    builder_.begin(seconds(50));
  }

  SwitchRecord record(uint16_t sequence, uint8_t tag, Pid pid, Nanoseconds after) const {
    SwitchRecord record{};
    record.type = kRecordType;
    record.sequence = sequence;
    record.tag = tag;
    record.pid = pid;
    record.context = pid;
    record.gpu_instance = record.compute_instance = 255;
    record.timestamp = static_cast<uint64_t>((kRecordStart + after).count());
    return record;
  }
  std::string take(const SwitchRecord& record) {
    const Status taken = stream_.take(record, clock_, builder_);
    return taken.ok() ? "" : taken.error().message;
  }
  size_t bins(Nanoseconds until) {
    builder_.complete_until(seconds(50) + until);
    return builder_.take_bins().size();
  }

  GpuClock clock_;
  ResidencyBuilder builder_;
  RecordStream stream_;
};

TEST_F(Stream, TheFirstRecordSaysWhereTheSequenceIs) {
  for (const uint16_t first : std::initializer_list<uint16_t>{0, 3576, 50000}) {
    stream_.restart();
    for (uint16_t i = 0; i < 10; ++i) {
      EXPECT_EQ(take(record(static_cast<uint16_t>(first + i), i % 2 == 0 ? kTagStart : kTagEnd, 7, milliseconds(i))),
                "");
    }
  }
  EXPECT_EQ(stream_.lost(), 0u);
  EXPECT_EQ(stream_.records(), 30u);
}

TEST_F(Stream, TheSequenceGoesRoundWithoutALoss) {
  for (uint32_t i = 0; i < 70'000; ++i) {
    ASSERT_EQ(take(record(static_cast<uint16_t>(65'000 + i), i % 2 == 0 ? kTagStart : kTagEnd, 7, milliseconds(i))),
              "");
  }
  EXPECT_EQ(stream_.lost(), 0u);
}

TEST_F(Stream, CountsWhatIsMissingAndBooksItToNobody) {
  take(record(10, kTagStart, 7, milliseconds(0)));
  take(record(12, kTagStart, 8, milliseconds(100)));
  EXPECT_EQ(stream_.lost(), 1u);
  EXPECT_EQ(bins(milliseconds(161)), 3u);
  EXPECT_EQ(builder_.take_counts().unknown, milliseconds(100));
  take(record(15, kTagEnd, 8, milliseconds(200)));
  EXPECT_EQ(stream_.lost(), 3u);
}

TEST_F(Stream, MoreThanASequenceLostShowsByTheDrops) {
  take(record(10, kTagStart, 7, milliseconds(0)));
  stream_.note_drops(70'000);
  take(record(static_cast<uint16_t>(11 + 70'000), kTagStart, 7, milliseconds(50)));
  EXPECT_EQ(stream_.lost(), 70'000u);
  stream_.note_drops(65'536);
  take(record(static_cast<uint16_t>(12 + 70'000), kTagEnd, 7, milliseconds(60)));
  EXPECT_EQ(stream_.lost(), 135'536u);
}

TEST_F(Stream, OtherTagsChangeNothing) {
  take(record(1, kTagStart, 7, milliseconds(0)));
  uint16_t sequence = 2;
  for (const uint8_t tag : std::initializer_list<uint8_t>{0, 1, 2, 4, 0x0a, 0x0b, 0x0c, 0x0d, 0xff}) {
    EXPECT_EQ(take(record(sequence++, tag, 9, milliseconds(10))), "") << int{tag};
  }
  EXPECT_EQ(bins(milliseconds(41)), 2u);
  EXPECT_EQ(builder_.take_counts().unknown, milliseconds(0));
}

TEST_F(Stream, TagsOfFullDetailAreTakenToo) {
  take(record(1, kTagContextStart, 7, milliseconds(0)));
  take(record(2, kTagSaveEnd, 7, milliseconds(5)));
  EXPECT_EQ(builder_.take_counts().doubtful, 0u);
}

TEST_F(Stream, AResetOfTheEngineEndsWhatIsKnown) {
  take(record(1, kTagStart, 7, milliseconds(0)));
  take(record(2, kTagEngineReset, 7, milliseconds(10)));
  EXPECT_EQ(bins(milliseconds(100)), 0u);
}

TEST_F(Stream, RefusesWhatItDoesNotKnow) {
  SwitchRecord odd = record(1, kTagStart, 7, milliseconds(0));
  odd.type = kRecordTypeOfOlderBind;
  EXPECT_EQ(take(odd), "the trace has a record of an unknown type 134");
  odd.type = 0;
  EXPECT_THAT(take(odd), HasSubstr("unknown type 0"));
  EXPECT_THAT(take(record(1, 0x20, 7, milliseconds(0))), HasSubstr("unknown tag 32"));
  EXPECT_THAT(take(record(1, kTagStart, kHiddenPid, milliseconds(0))), HasSubstr("SYS_ADMIN"));
  // Booked, the time up to it would take all memory.
  EXPECT_THAT(take(record(1, kTagStart, 7, std::chrono::hours(100))), HasSubstr("future"));
  odd = record(1, kTagStart, 7, milliseconds(0));
  odd.timestamp = std::numeric_limits<uint64_t>::max();
  EXPECT_THAT(take(odd), HasSubstr("future"));
}

TEST_F(Stream, AMissingTimeIsTheOneBeforeAndNoTimeGoesBack) {
  take(record(1, kTagStart, 7, milliseconds(10)));
  SwitchRecord without = record(2, kTagEnd, 7, milliseconds(0));
  without.timestamp = 0;
  take(without);
  EXPECT_EQ(stream_.last_at(), seconds(50) + milliseconds(10));
  take(record(3, kTagStart, 8, milliseconds(4)));
  EXPECT_EQ(stream_.last_at(), seconds(50) + milliseconds(10));
  EXPECT_EQ(stream_.backwards(), 1u);
}

}  // namespace
}  // namespace gpuledger::switch_trace
