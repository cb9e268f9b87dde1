// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sample/dcgm/dcgm_error.h"
#include "sample/dcgm/dcgm_fields.h"

namespace gpuledger::dcgm {
namespace {

FieldValue_v1 whole(int64_t value, int status = 0, FieldId field = 156) {
  FieldValue_v1 out{};
  out.fieldId = field;
  out.fieldType = 'i';
  out.status = status;
  out.value.i64 = value;
  return out;
}

FieldValue_v1 fraction(double value, FieldId field = 155) {
  FieldValue_v1 out{};
  out.fieldId = field;
  out.fieldType = 'd';
  out.value.dbl = value;
  return out;
}

FieldValue_v1 words(const char* text) {
  FieldValue_v1 out{};
  out.fieldType = 's';
  std::strncpy(out.value.text, text, sizeof out.value.text - 1);
  return out;
}

TEST(DcgmValue, EveryBlankIsNoNumber) {
  for (int64_t reason = 0; reason < 16; ++reason) {
    EXPECT_FALSE(reading_of(whole(kBlank64 + reason)).integer());
    EXPECT_FALSE(reading_of(fraction(kBlankDouble + static_cast<double>(reason))).number());
  }
  EXPECT_EQ(reading_of(whole(kBlank64 - 1)).integer(), kBlank64 - 1);
  EXPECT_EQ(reading_of(fraction(31.737)).number(), 31.737);
  for (const char* blank : {"\n", "<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>", ""}) {
    EXPECT_FALSE(reading_of(words(blank)).text()) << blank;
  }
  EXPECT_EQ(reading_of(words("NVIDIA H200")).text(), "NVIDIA H200");
  EXPECT_EQ(reading_of(words("H\n200\xff\xfe")).text(), "H200\xef\xbf\xbd") << "it becomes a label";
}

// Version 3 gives 0 with "no data": were the blank asked first, there would be a number.
TEST(DcgmValue, TheStatusComesBeforeTheNumber) {
  EXPECT_FALSE(reading_of(whole(0, kNoData)).integer());
  EXPECT_FALSE(reading_of(whole(0, -67)).integer());  // a number of a newer version
  EXPECT_TRUE(reading_of(whole(0)).integer());
}

TEST(DcgmValue, NumbersThatAreNoneAndOtherTypes) {
  EXPECT_FALSE(reading_of(fraction(std::nan(""))).number());
  EXPECT_FALSE(reading_of(fraction(std::numeric_limits<double>::infinity())).number());
  EXPECT_FALSE(reading_of(fraction(1)).integer());
  EXPECT_FALSE(reading_of(whole(1)).text());
  EXPECT_FALSE(reading_of(whole(-5)).count());
}

TEST(DcgmValue, BlobsOfAnotherVersionAreRefused) {
  RunningProcess process{kRunningProcessVersion, 77, 1024};
  FieldValue_v1 value{};
  value.fieldType = 'b';
  std::memcpy(value.value.blob, &process, sizeof process);
  ASSERT_TRUE(reading_of(value).blob<RunningProcess>(kRunningProcessVersion));
  EXPECT_EQ(reading_of(value).blob<RunningProcess>(kRunningProcessVersion)->pid, 77u);
  EXPECT_FALSE(reading_of(value).blob<AccountingStats>(kAccountingStatsVersion));
}

// Times of violation are nanoseconds, also where the header says microseconds.
TEST(DcgmFields, ViolationTimesAreNanoseconds) {
  DeviceSample sample;
  add_to_device(reading_of(whole(1'500'000'000, 0, 240)), sample);
  EXPECT_EQ(sample.vitals[Vital::kPowerViolation], 1'500'000'000u);
}

TEST(DcgmFields, UnitsAndImpossibleValues) {
  DeviceSample sample;
  add_to_device(reading_of(whole(277'444'600, 0, kFieldEnergy)), sample);
  add_to_device(reading_of(fraction(124.5)), sample);
  add_to_device(reading_of(whole(80000, 0, 252)), sample);
  add_to_device(reading_of(whole(101, 0, 203)), sample);
  add_to_device(reading_of(whole(255, 0, 150)), sample);
  EXPECT_EQ(sample.energy_counter, Energy::millijoules(277'444'600));
  EXPECT_EQ(sample.power, Power::milliwatts(124'500));
  EXPECT_EQ(sample.memory_used, Bytes{80000ull << 20});
  EXPECT_FALSE(sample.gpu_utilization);
  EXPECT_FALSE(sample.temperature_celsius);
  Activity activity;
  EXPECT_TRUE(add_to_activity(reading_of(fraction(0.25, 1002)), activity));
  EXPECT_TRUE(add_to_activity(reading_of(fraction(61, 1004)), activity));
  EXPECT_EQ(activity.parts[Activity::kSm], Ratio{0.25});
  EXPECT_FALSE(activity.parts[Activity::kTensor]);
}

// 200 and 201 are answered "not supported" by every version in use, and look like 0 in a process's summary.
TEST(DcgmFields, PcieThroughputIsNotAskedFor) {
  for (const FieldId field : device_fields()) EXPECT_TRUE(field != 200 && field != 201);
}

TEST(DcgmError, UnknownNumbersAreNoData) {
  EXPECT_EQ(code_of(static_cast<Return>(-66)), Code::kInternal);
  EXPECT_EQ(describe("dcgmWatchFields", kNotWatched), "dcgmWatchFields: not watched (DCGM -16)");
  EXPECT_TRUE(means_engine_gone(kConnectionNotValid));
  EXPECT_FALSE(means_engine_gone(kFunctionNotFound));
}

}  // namespace
}  // namespace gpuledger::dcgm
