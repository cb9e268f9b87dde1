// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_lives.h"

#include <cstdlib>

#include "sample/dcgm/dcgm_fields.h"

namespace gpuledger::dcgm {

namespace {

constexpr double kKeepLivesSeconds = 300;
constexpr size_t kMostTold = 8192;           // the driver keeps 4000
constexpr int64_t kAgreeWithinUs = 1000000;  // both answers come from one record

}  // namespace

LifeReader::LifeReader(Nanoseconds since_1970) : since_(since_1970) {}

Return LifeReader::watch(Connection& engine, Nanoseconds every) {
  const long long period = std::chrono::duration_cast<std::chrono::microseconds>(every).count();
  const Return result =
      engine.call("dcgmWatchPidFields", engine.functions().dcgmWatchPidFields, kAllGpus, period, kKeepLivesSeconds, 0);
  watched_ = result == kOk;
  return result;
}

// The watch succeeds even if the driver has no accounting (MIG, vGPU hosts); the field itself then says so.
std::set<unsigned> LifeReader::without_accounting(Connection& engine, const std::map<unsigned, GpuUuid>& gpus) {
  std::vector<Entity> entities;
  for (const auto& [gpu, uuid] : gpus) entities.push_back({kEntityGpu, gpu});
  std::set<unsigned> without;
  for (const auto& [entity, reading] : engine.read_latest(entities, {kFieldAccounting}, false)) {
    if (means_unsupported(reading.status)) without.insert(entity.id);
  }
  return without;
}

std::optional<Life> LifeReader::confirm(Connection& engine, unsigned gpu, const AccountingStats& stats,
                                        Nanoseconds now_1970) {
  *info_ = {};
  info_->version = kPidInfoVersion;
  info_->pid = stats.pid;
  const Return result = engine.call("dcgmGetPidInfo", engine.functions().dcgmGetPidInfo, kAllGpus, info_.get());
  if (result != kOk) {
    if (result != kNoData && result != kNotWatched) engine.count_failure(result);
    return std::nullopt;
  }
  for (int i = 0; i < std::min(info_->numGpus, kMostDevices); ++i) {
    const PidSingleInfo& told = info_->gpus[i];
    if (told.gpuId != gpu) continue;
    const int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(now_1970).count();
    const bool possible = told.startTime > 0 && told.startTime <= now_us && told.endTime > told.startTime &&
                          told.endTime <= now_us + kAgreeWithinUs;
    const bool agrees = std::llabs(told.startTime - static_cast<int64_t>(stats.startTimestamp)) <= kAgreeWithinUs;
    if (!possible || !agrees) break;
    Life life;
    life.pid = stats.pid;
    life.began = std::chrono::microseconds(told.startTime);
    life.ended = std::chrono::microseconds(told.endTime);
    life.busy_seconds =
        Ratio::of_percent(stats.gpuUtilization).value * std::chrono::duration<double>(life.ended - life.began).count();
    if (told.maxGpuMemoryUsed >= 0 && !is_blank(told.maxGpuMemoryUsed)) {
      life.memory = Bytes{static_cast<uint64_t>(told.maxGpuMemoryUsed)};
    }
    return life;
  }
  engine.count_failure("malformed");
  return std::nullopt;
}

std::vector<Life> LifeReader::read(Connection& engine, const std::map<unsigned, GpuUuid>& gpus, Nanoseconds now_1970) {
  std::vector<Life> lives;
  if (!watched_) return lives;
  const int64_t begin_us = std::chrono::duration_cast<std::chrono::microseconds>(since_).count();
  const int64_t now_us = std::chrono::duration_cast<std::chrono::microseconds>(now_1970).count();
  const std::set<unsigned> without = without_accounting(engine, gpus);
  for (const auto& [gpu, uuid] : gpus) {
    if (engine.gone()) break;
    if (without.contains(gpu)) continue;
    int64_t& until_us = read_until_us_.try_emplace(gpu, begin_us).first->second;
    until_us = std::min(until_us, now_us);  // the clock may have been set back
    std::vector<AccountingStats> over;
    for (const Reading& reading : engine.read_history(gpu, kFieldAccounting, until_us + 1, now_us)) {
      until_us = std::max(until_us, reading.at_us);
      const auto stats = reading.blob<AccountingStats>(kAccountingStatsVersion);
      if (!stats || stats->pid == 0 || stats->activeTimeUsec == 0) continue;
      if (stats->startTimestamp > static_cast<uint64_t>(now_us)) continue;
      if (stats->gpuUtilization == 0 || stats->gpuUtilization > 100) continue;  // nothing to book
      over.push_back(*stats);
    }
    auto& told = told_[gpu];
    if (told.size() > kMostTold) told.clear();
    for (const AccountingStats& stats : over) {
      if (const auto last = told.find(stats.pid); last != told.end() && last->second == stats.startTimestamp) continue;
      told[stats.pid] = stats.startTimestamp;
      auto life = confirm(engine, gpu, stats, now_1970);
      if (!life || life->ended < since_) continue;
      life->gpu = uuid;
      lives.push_back(std::move(*life));
    }
  }
  return lives;
}

}  // namespace gpuledger::dcgm
