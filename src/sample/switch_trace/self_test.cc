// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/self_test.h"

#include <algorithm>

namespace gpuledger::switch_trace {
namespace {

constexpr Nanoseconds kProbation = std::chrono::seconds(2);
constexpr Nanoseconds kForgetStranger = std::chrono::minutes(2);
constexpr unsigned kScansToTell = 2;
// Activity and bins cover slightly different times, so a difference must last.
constexpr unsigned kBatchesToTell = 5;
constexpr double kActivityMargin = 0.2;
constexpr unsigned kCaughtToSuspect = 5;
constexpr unsigned kCaughtToTell = 15;
constexpr double kClearlyWorking = 0.05;
constexpr size_t kFewestBins = 10;

bool is_listed(const DeviceSample& device, Pid pid) {
  return std::any_of(device.processes.begin(), device.processes.end(),
                     [&](const ProcessSample& process) { return process.listed && process.pid == pid; });
}

std::set<Pid> residents_of(const std::vector<ResidencyBin>& bins) {
  std::set<Pid> pids;
  for (const ResidencyBin& bin : bins) {
    for (const Residency& resident : bin.residents) pids.insert(resident.pid);
  }
  return pids;
}

}  // namespace

bool SelfTest::passed(Nanoseconds now) const {
  return began_ && now - *began_ >= kProbation;
}

std::string SelfTest::compare(const DeviceSample& device, const std::vector<ResidencyBin>& fresh, bool scanned,
                              Nanoseconds now) {
  if (!began_) began_ = now;
  for (const ResidencyBin& bin : fresh) {
    for (const Residency& resident : bin.residents) {
      if (!is_listed(device, resident.pid)) {
        Stranger& stranger = strangers_[resident.pid];
        stranger.last_resident = std::max(stranger.last_resident, bin.end);
      }
    }
  }
  std::string wrong = compare_sums(fresh);
  if (wrong.empty()) wrong = compare_lists(device, scanned, now);
  if (wrong.empty()) wrong = compare_activity(device, fresh);
  if (wrong.empty()) wrong = compare_samples(device, fresh);
  return wrong;
}

std::string SelfTest::compare_sums(const std::vector<ResidencyBin>& bins) const {
  for (const ResidencyBin& bin : bins) {
    Nanoseconds sum{0};
    for (const Residency& resident : bin.residents) sum += resident.resident;
    if (sum > bin.width) return "its times add up to more than the time that passed";
  }
  return {};
}

// A process that came after the lists were read, or left before, is normal. A stranger was on the engine before and
// after a scan that did not list it, twice.
std::string SelfTest::compare_lists(const DeviceSample& device, bool scanned, Nanoseconds now) {
  std::erase_if(strangers_, [&](const auto& entry) {
    return is_listed(device, entry.first) || now - entry.second.last_resident > kForgetStranger;
  });
  if (!scanned) return {};
  for (auto& [pid, stranger] : strangers_) {
    if (stranger.scanned_at != Nanoseconds(0) && stranger.last_resident <= stranger.scanned_at) continue;
    if (stranger.scanned_at != Nanoseconds(0)) ++stranger.scans;
    stranger.scanned_at = now;
    if (stranger.scans < kScansToTell) continue;
    return "it names the process " + std::to_string(pid) +
           ", which the driver's lists do not have: the pids are not those of the host, or not of this GPU";
  }
  return {};
}

// Work needs a process on the engine. The reverse is no contradiction: a context may be on it and idle. The monitors
// count up to a fifth of the time between two contexts as work, so a bin with any process on the engine counts as a
// whole.
std::string SelfTest::compare_activity(const DeviceSample& device, const std::vector<ResidencyBin>& bins) {
  if (bins.size() < kFewestBins || !device.activity || !device.activity->graphics) {
    overfull_ = 0;
    return {};
  }
  Nanoseconds occupied{0}, all{0};
  for (const ResidencyBin& bin : bins) {
    if (!bin.residents.empty()) occupied += bin.width;
    all += bin.width;
  }
  const double share = static_cast<double>(occupied.count()) / static_cast<double>(all.count());
  overfull_ = device.activity->graphics->value > share + kActivityMargin ? overfull_ + 1 : 0;
  if (overfull_ < kBatchesToTell) return {};
  return "the GPU works, but the trace shows no process on it";
}

std::string SelfTest::compare_samples(const DeviceSample& device, const std::vector<ResidencyBin>& bins) {
  suspicious_ = false;
  if (device.utilization != UtilizationState::kKnown || bins.size() < kFewestBins) return {};
  const std::set<Pid> residents = residents_of(bins);
  std::map<Pid, unsigned> caught;
  for (const ProcessSample& process : device.processes) {
    if (process.use.sm.value < kClearlyWorking || residents.contains(process.pid)) continue;
    const auto before = caught_.find(process.pid);
    const unsigned times = before == caught_.end() ? 1 : before->second + 1;
    suspicious_ = suspicious_ || times >= kCaughtToSuspect;
    if (times >= kCaughtToTell) {
      return "the driver's samples catch the process " + std::to_string(process.pid) +
             " working, which the trace never names";
    }
    caught[process.pid] = times;
  }
  caught_ = std::move(caught);
  return {};
}

}  // namespace gpuledger::switch_trace
