// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/driver_branch.h"

#include <charconv>
#include <string>

namespace gpuledger::switch_trace {
namespace {

using std::chrono::milliseconds;

// Up to 535 the kernel moves records to the ring once per second, later every 33 ms. Measured ages at a poll are up to
// 109 ms.
constexpr Nanoseconds kSlowDelivery = milliseconds(1200);
constexpr Nanoseconds kFastDelivery = milliseconds(120);
constexpr size_t kWithoutNumaNode = 120;
constexpr size_t kWithNumaNode = 128;

constexpr DriverBranch kBranches[] = {
    {535, kWithoutNumaNode, kSlowDelivery}, {545, kWithNumaNode, kFastDelivery}, {550, kWithNumaNode, kFastDelivery},
    {555, kWithNumaNode, kFastDelivery},    {560, kWithNumaNode, kFastDelivery}, {565, kWithNumaNode, kFastDelivery},
    {570, kWithNumaNode, kFastDelivery},    {575, kWithNumaNode, kFastDelivery}, {580, kWithNumaNode, kFastDelivery},
    {590, kWithNumaNode, kFastDelivery},    {595, kWithNumaNode, kFastDelivery},
};

}  // namespace

std::span<const DriverBranch> known_branches() {
  return kBranches;
}

Result<DriverBranch> find_branch(std::string_view version) {
  unsigned major = 0;
  const auto [end, failed] = std::from_chars(version.data(), version.data() + version.size(), major);
  const bool number = failed == std::errc() && end != version.data() + version.size() && *end == '.';
  for (const DriverBranch& branch : kBranches) {
    if (number && branch.major == major) return branch;
  }
  return Error{Code::kNotSupported,
               "driver " + std::string(version) +
                   " is not one whose trace is known (branches 535 to 595): a newer gpu-ledger may "
                   "know it"};
}

}  // namespace gpuledger::switch_trace
