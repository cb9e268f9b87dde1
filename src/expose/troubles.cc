// SPDX-License-Identifier: Apache-2.0
#include "expose/troubles.h"

#include <algorithm>

#include "base/duration.h"

namespace gpuledger::expose {
namespace {

constexpr Nanoseconds kRecent = std::chrono::hours(24);

struct Sign {
  Vital vital;
  const char* text;
  bool counted = false;  // the value is put before the text
};
constexpr Sign kSigns[] = {
    {Vital::kRemapFailed, "a memory row could not be remapped: the GPU needs to be replaced"},
    {Vital::kEccUncorrectedVolatile, "uncorrected ECC errors since the driver was loaded", true},
    {Vital::kRemapPending, "memory rows wait to be remapped: reset the GPU"},
    {Vital::kRetiredPagesPending, "memory pages wait to be retired: reset the GPU"},
};

// Without the power limit: a GPU at its power limit works normally.
struct Slowdown {
  ThrottleReason bit;
  const char* text;
};
constexpr Slowdown kSlowdowns[] = {
    {kThrottleHwThermal, "slowed down by heat, in hardware"},
    {kThrottleSwThermal, "slowed down by heat"},
    {kThrottleHwPowerBrake, "slowed down by the power supply's brake"},
};

void add_xids(const DeviceAccount& account, Nanoseconds now, std::vector<std::string>& out) {
  for (const auto& [xid, seen] : account.xid_seen) {
    const Nanoseconds age = std::max(now - seen, Nanoseconds(0));
    if (age > kRecent) continue;
    const auto count = account.xids.find(xid);
    const uint64_t times = count == account.xids.end() ? 1 : count->second;
    out.push_back("Xid " + std::to_string(xid) + ", " +
                  (times == 1 ? std::string("once") : std::to_string(times) + " times") + ", last " +
                  write_duration(std::chrono::floor<std::chrono::seconds>(age)) + " ago");
  }
}

void add_slowdowns(uint64_t reasons, std::vector<std::string>& out) {
  const size_t before = out.size();
  for (const Slowdown& slowdown : kSlowdowns) {
    if ((reasons & slowdown.bit) != 0) out.emplace_back(slowdown.text);
  }
  // The driver sets this bit with a more specific one, or alone if the GPU has none.
  if ((reasons & kThrottleHwSlowdown) != 0 && out.size() == before) out.emplace_back("slowed down by its hardware");
}

}  // namespace

std::vector<std::string> list_troubles(const DeviceSeries& device, Nanoseconds now) {
  std::vector<std::string> out;
  if (!device.account->up) out.emplace_back("does not answer");
  add_xids(*device.account, now, out);
  if (device.sample == nullptr) return out;
  const Vitals& vitals = device.sample->vitals;
  for (const Sign& sign : kSigns) {
    const auto value = vitals[sign.vital];
    if (value.value_or(0) == 0) continue;
    out.push_back(sign.counted ? std::to_string(*value) + " " + sign.text : sign.text);
  }
  if (const auto reasons = vitals[Vital::kThrottleReasons]) add_slowdowns(*reasons, out);
  return out;
}

}  // namespace gpuledger::expose
