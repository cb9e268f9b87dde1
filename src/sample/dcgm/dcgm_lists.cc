// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_lists.h"

#include <algorithm>
#include <utility>

#include "sample/dcgm/dcgm_fields.h"

namespace gpuledger::dcgm {
namespace {

constexpr FieldId kLists[] = {kFieldComputePids, kFieldGraphicsPids};
// As often as NVML's lists are read.
constexpr Nanoseconds kPeriod = std::chrono::milliseconds(100);
constexpr int64_t kBetweenEntriesUs = 1;  // of one list
constexpr int64_t kAheadUs = 100000;      // a list may be read after the counter
// An empty list leaves no value: a GPU has no process if the newest value is older than this.
constexpr int64_t kLateUs = 500000;
constexpr int64_t kFurthestBackUs = 10'000'000;  // if a read comes late
// Of Connection::kHistoryLength each: the lists of a second with 1,600 processes.
constexpr int kMostPages = 64;

// When a list counts as stale.
int64_t stale_after_us(Nanoseconds interval) {
  return kLateUs + micros(ProcessLists::period(interval));
}

}  // namespace

Nanoseconds ProcessLists::period(Nanoseconds interval) {
  return std::min(interval, kPeriod);
}

std::span<const FieldId> ProcessLists::fields() {
  return kLists;
}

// Each process of a list is its own value, and the engine keeps only one value per time: each is 1 us after the one
// before. If the clock was set back, the engine has lists in the future, which are ignored.
void ProcessLists::read_list(Connection& engine, unsigned gpu, size_t list, int64_t since_us, int64_t until_us,
                             Gpu& known) {
  std::optional<int64_t> next_us;
  bool newest = true;
  bool more = true;
  for (int page = 0; page < kMostPages && more && since_us <= until_us; ++page) {
    const auto readings = engine.read_history(gpu, kLists[list], since_us, until_us, kOrderDescending);
    for (const Reading& reading : readings) {
      newest = newest && (!next_us || *next_us - reading.at_us <= kBetweenEntriesUs);
      next_us = reading.at_us;
      known.until_us[list] = std::max(known.until_us[list], reading.at_us);
      if (newest) known.newest_us[list] = reading.at_us;
      note(reading, list, known);
    }
    more = readings.size() == Connection::kHistoryLength;
    if (more) until_us = readings.back().at_us - 1;
  }
}

void ProcessLists::note(const Reading& reading, size_t list, Gpu& known) {
  const auto process = reading.blob<RunningProcess>(kRunningProcessVersion);
  if (!process || process->pid == 0) return;
  const auto [entry, fresh] = known.seen.try_emplace(process->pid);
  Seen& seen = entry->second;
  seen.first_us = fresh ? reading.at_us : std::min(seen.first_us, reading.at_us);
  if (reading.at_us <= seen.last_us[list]) return;
  seen.last_us[list] = reading.at_us;
  seen.process.pid = process->pid;
  (kLists[list] == kFieldComputePids ? seen.process.compute : seen.process.graphics) = true;
  if (!is_blank(static_cast<int64_t>(process->memoryUsed)) && process->memoryUsed < UINT64_MAX / 2) {
    seen.process.memory = Bytes{process->memoryUsed};
  }
}

std::vector<ProcessSample> ProcessLists::read(Connection& engine, unsigned gpu, int64_t engine_us, Nanoseconds at,
                                              Nanoseconds interval) {
  Gpu& known = gpus_[gpu];
  const auto ahead = [&](int64_t us) { return us > engine_us + kAheadUs; };
  // The clock was set back: earlier reads are in the future.
  if (std::any_of(known.until_us.begin(), known.until_us.end(), ahead)) known = Gpu();
  const bool first = !std::exchange(known.looked, true);
  const int64_t furthest_us = engine_us - (first ? stale_after_us(interval) : kFurthestBackUs);
  for (size_t list = 0; list < kFields; ++list) {
    const int64_t since_us = std::max(known.until_us[list] + 1, furthest_us);
    read_list(engine, gpu, list, since_us, engine_us + kAheadUs, known);
  }
  return tell(known, first, engine_us, at, interval);
}

std::vector<ProcessSample> ProcessLists::tell(Gpu& known, bool first, int64_t engine_us, Nanoseconds at,
                                              Nanoseconds interval) {
  const int64_t oldest_us = engine_us - stale_after_us(interval);
  const auto steady = [&](int64_t us) { return at - std::chrono::microseconds(engine_us - us); };
  std::vector<ProcessSample> processes;
  for (auto entry = known.seen.begin(); entry != known.seen.end();) {
    Seen& seen = entry->second;
    bool listed = false;
    for (size_t list = 0; list < kFields; ++list) {
      const int64_t begin_us = known.newest_us[list];
      listed |= seen.last_us[list] > 0 && seen.last_us[list] >= begin_us && begin_us >= oldest_us;
    }
    ProcessSample& process = processes.emplace_back(seen.process);
    process.listed = listed;
    // A process in the first read may have started at any time.
    if (!std::exchange(seen.told, true) && !first) process.came = steady(seen.first_us);
    if (!listed) {
      const int64_t last_us = *std::max_element(seen.last_us.begin(), seen.last_us.end());
      process.left = steady(std::min(engine_us, last_us + micros(period(interval))));
    }
    entry = listed ? std::next(entry) : known.seen.erase(entry);
  }
  return processes;
}

}  // namespace gpuledger::dcgm
