// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_accounting.h"

#include <algorithm>

namespace gpuledger::nvml {

namespace {

constexpr int kMostAccountTries = 4;
constexpr unsigned kFirstAccountCapacity = 256;
constexpr unsigned kMostPids = 1u << 14;  // the driver keeps 4000

}  // namespace

// Empty: failed now.
std::optional<std::vector<unsigned>> AccountingReader::read_pids(Session& session, Device device) {
  unsigned capacity = kFirstAccountCapacity;
  Return result = kInsufficientSize;
  for (int attempt = 0; attempt < kMostAccountTries && result == kInsufficientSize; ++attempt) {
    std::vector<unsigned> pids(capacity);
    unsigned count = capacity;
    result = session.call(session.fn.nvmlDeviceGetAccountingPids, device, &count, pids.data());
    if (result == kSuccess) {
      pids.resize(std::min(count, capacity));
      return pids;
    }
    capacity = std::min(kMostPids, std::max(count, capacity * 2));
  }
  unsupported_ = means_unsupported(result);
  if (!unsupported_) session.call.count_failure(result);
  return std::nullopt;
}

std::vector<ShortLife> AccountingReader::read(Session& session, Device device) {
  std::vector<ShortLife> lives;
  if (unsupported_ || !session.fn.nvmlDeviceGetAccountingStats) return lives;
  const Nanoseconds now = session.call.now().steady;
  const std::optional<std::vector<unsigned>> pids = read_pids(session, device);
  if (!pids) return lives;
  std::map<Pid, unsigned long long> starts;
  for (const unsigned pid : *pids) {
    if (seen_.contains(pid)) {
      starts[pid] = 0;
      continue;
    }
    AccountingStats stats{};
    const Return result = session.call(session.fn.nvmlDeviceGetAccountingStats, device, pid, &stats);
    if (result != kSuccess) {
      if (result != kNotFound) session.call.count_failure(result);  // not found: dropped between the two calls
      starts[pid] = 0;
      continue;
    }
    starts[pid] = stats.startTime;
    const auto before = starts_.find(pid);
    const bool known = before != starts_.end() && (before->second == stats.startTime || before->second == 0);
    if (!read_at_ || known || stats.isRunning || stats.gpuUtilization == 0 || stats.gpuUtilization > 100) continue;
    // For a reused pid the driver returns the exited process first, so a process hidden behind it may appear late. One
    // that started before the last read does not fit between the two.
    const double lived_seconds = static_cast<double>(stats.time) / 1000;
    if (lived_seconds > std::chrono::duration<double>(now - *read_at_).count()) continue;
    ShortLife life;
    life.pid = pid;
    life.busy_seconds = Ratio::of_percent(stats.gpuUtilization).value * lived_seconds;
    if (stats.maxMemoryUsage != kValueNotAvailable) life.memory = Bytes{stats.maxMemoryUsage};
    lives.push_back(life);
  }
  starts_ = std::move(starts);
  read_at_ = now;
  seen_.clear();
  return lives;
}

}  // namespace gpuledger::nvml
