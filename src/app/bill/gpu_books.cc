// SPDX-License-Identifier: Apache-2.0
#include "app/bill/gpu_books.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpuledger::app {
namespace {

constexpr int64_t kMillijoule = 1000;
constexpr int64_t kPatienceMs = 60'000;  // clocks differ, and a first sample may be of before the start

}  // namespace

void GpuBooks::open(const GpuReading& reading, int64_t at_ms, const ExporterRun& run) {
  if (first_ms_ == 0) first_ms_ = at_ms;
  at_ms_ = at_ms;
  if (run.started_ms) started_ms_ = run.started_ms;
  energy_ = reading.energy;
  booked_ = reading.accounts;
  remainder_ = {reading.closed.begin(), reading.closed.end()};
  closed_ = reading.closed;
  for (const auto& [owner, error] : reading.standard_errors) {
    Errors& errors = errors_[owner];
    errors.first = errors.last = error;
  }
}

void GpuBooks::open_at_zero(int64_t at_ms, const ExporterRun& run) {
  first_ms_ = at_ms_ = at_ms;
  started_ms_ = run.started_ms;
}

bool GpuBooks::fell(const GpuReading& reading) const {
  if (reading.energy < energy_ - reading.rounding()) return true;
  return std::any_of(reading.accounts.begin(), reading.accounts.end(), [&](const auto& now) {
    const auto before = booked_.find(now.first);
    return before != booked_.end() && now.second < before->second - kMillijoule;
  });
}

bool GpuBooks::may_have_begun(const GpuReading& reading, int64_t began_ms, int64_t at_ms) {
  // Watts times milliseconds are millijoules.
  return reading.energy / kMillijoule <= kMostWatts * (std::max<int64_t>(at_ms - began_ms, 0) + kPatienceMs);
}

bool GpuBooks::has_restarted(std::optional<int64_t> started_ms) const {
  if (!started_ms) return false;
  return *started_ms > started_ms_.value_or(at_ms_ - kPatienceMs);
}

// Microjoules that accounts had and neither they nor their closed account have any more.
Wide GpuBooks::lost(const GpuReading& reading) const {
  Wide fallen = 0;
  std::map<BillGroup, Wide> rise(reading.closed.begin(), reading.closed.end());
  for (const auto& [group, before] : remainder_) rise[group] -= before;
  for (const auto& [account, before] : booked_) {
    const auto now = reading.accounts.find(account);
    if (now == reading.accounts.end()) {
      rise[account.group] -= before;
    } else if (account.group.quantity != BillQuantity::kGpuTime) {
      fallen += std::max<Wide>(0, before - now->second);
    }
  }
  std::map<BillGroup, Wide> fresh;
  for (const auto& [account, now] : reading.accounts) {
    if (!booked_.contains(account)) fresh[account.group] += now;
  }
  for (const auto& [group, value] : rise) {
    if (group.quantity == BillQuantity::kGpuTime) continue;
    // Of the closed account something may have come back that --max-series had left out.
    const auto closed = closed_.find(group);
    const Wide back = closed == closed_.end() ? 0 : std::min<Wide>(fresh[group], closed->second);
    fallen += std::max<Wide>(0, -value - back);
  }
  return fallen;
}

// What an exporter that reads its state books for the time it was down: unattributed, or as estimated to owners that
// were there before.
Wide GpuBooks::booked_late(const GpuReading& reading, const BillFacts& facts) const {
  Wide late = 0;
  for (const auto& [account, now] : reading.accounts) {
    const auto before = booked_.find(account);
    const bool estimated = account.group.quantity == BillQuantity::kShared && before != booked_.end();
    if (!estimated && !is_exporter_down(account.owner, facts)) continue;
    late += std::max<Wide>(0, Wide{now} - (before == booked_.end() ? 0 : before->second));
  }
  return late;
}

GpuBooks::Step GpuBooks::judge(const GpuReading& reading, int64_t at_ms, const ExporterRun& run,
                               const BillFacts& facts) const {
  const auto started = run.started_ms;
  if (reading.energy >= energy_ - reading.rounding()) {
    if (!has_restarted(started) || !may_have_begun(reading, *started, at_ms)) return Step::kWentOn;
    if (!run.keeps_state.value_or(true)) return Step::kBeganAgain;
    const Wide forgotten = lost(reading);
    if (forgotten <= reading.rounding()) return Step::kWentOn;
    // A killed exporter reads a state of some seconds before, and books again what owners lost.
    const bool seconds_old = forgotten <= Wide{kMostWatts} * kPatienceMs * kMillijoule;
    return seconds_old && booked_late(reading, facts) >= forgotten ? Step::kWentOn : Step::kBeganAgain;
  }
  const bool restarted = !started || has_restarted(started);
  const bool from_zero = may_have_begun(reading, std::max(started.value_or(at_ms_), at_ms_), at_ms);
  return restarted && from_zero ? Step::kBeganAgain : Step::kWentBack;
}

void GpuBooks::begin_again() {
  energy_ = 0;
  booked_.clear();
  remainder_.clear();
  closed_.clear();
  keep_errors();
}

void GpuBooks::keep_errors() {
  for (auto& [owner, errors] : errors_) {
    errors.before += std::abs(errors.last - errors.first);
    errors.first = errors.last = 0;
  }
}

void GpuBooks::spend(const BillAccount& account, Wide amount, double grams_per_microjoule) {
  Spent& spent = spent_[account.owner];
  switch (account.group.quantity) {
    case BillQuantity::kGpuTime: spent.gpu_time = spent.gpu_time.value_or(0) + amount; return;
    case BillQuantity::kAlone: spent.alone += amount; break;
    case BillQuantity::kShared: spent.shared += amount; break;
  }
  spent.co2e_grams += static_cast<double>(amount) * grams_per_microjoule;
}

// The closed accounts, without what was booked to accounts that are in them now.
void GpuBooks::book_ended(const GpuReading& reading, std::map<BillGroup, std::map<BillAccount, int64_t>>& fresh,
                          double grams, BillFacts& facts) {
  std::map<BillGroup, Wide> now(reading.closed.begin(), reading.closed.end());
  for (const auto& [account, value] : booked_) {
    if (!reading.accounts.contains(account)) now[account.group] -= value;
  }
  for (const auto& [group, before] : remainder_) now.try_emplace(group, 0);
  for (const auto& [group, value] : now) {
    Wide rise = value - remainder_[group];
    const bool no_time = group.quantity == BillQuantity::kGpuTime && !reading.closed.contains(group);
    if (no_time) continue;
    // An account that was left out by --max-series comes back: it is new to us, but not from 0.
    std::vector<std::pair<int64_t, BillAccount>> newest;
    for (const auto& [account, amount] : fresh[group]) newest.emplace_back(amount, account);
    std::sort(newest.rbegin(), newest.rend());
    for (const auto& [amount, account] : newest) {
      if (rise >= 0) break;
      const Wide past = std::min<Wide>(amount, -rise);
      spend(account, -past, grams);
      rise += past;
    }
    remainder_[group] = value;
    if (rise != 0) spend({group, ended_owner(group.kind, group.name_space, facts)}, rise, grams);
  }
}

GpuBooks::Step GpuBooks::advance(const GpuReading& reading, int64_t at_ms, const ExporterRun& run,
                                 double grams_per_microjoule, BillFacts& facts) {
  const Step step = judge(reading, at_ms, run, facts);
  if (step == Step::kWentBack) {
    keep_errors();
    open(reading, at_ms, run);
    return step;
  }
  if (step == Step::kBeganAgain) {
    begin_again();
    // Not later than the reading: its clock may have been ahead when it started.
    at_ms_ = std::max(at_ms_, std::min(at_ms, run.started_ms.value_or(at_ms_)));
  }
  if (run.started_ms) started_ms_ = run.started_ms;
  meter_ += reading.energy - energy_;
  energy_ = reading.energy;
  metered_ms_ += std::max<int64_t>(at_ms - at_ms_, 0);
  at_ms_ = std::max(at_ms, at_ms_);
  std::map<BillGroup, std::map<BillAccount, int64_t>> fresh;
  for (const auto& [account, value] : reading.accounts) {
    const auto [booked, is_new] = booked_.try_emplace(account, 0);
    const int64_t rise = value - booked->second;
    booked->second = value;
    if (is_new) fresh[account.group].emplace(account, value);
    if (rise != 0 || is_new) spend(account, rise, grams_per_microjoule);
  }
  book_ended(reading, fresh, grams_per_microjoule, facts);
  closed_ = reading.closed;
  for (const auto& [owner, error] : reading.standard_errors) errors_[owner].last = error;
  return step;
}

std::map<std::string, Wide> GpuBooks::owing() const {
  constexpr Wide kRounding = 10 * kMillijoule;
  std::map<std::string, Wide> owners;
  for (const auto& [owner, spent] : spent_) {
    if (const Wide joules = spent.alone + spent.shared; joules < -kRounding) owners.emplace(owner, -joules);
  }
  return owners;
}

std::optional<double> GpuBooks::standard_error(const std::string& owner) const {
  const auto found = errors_.find(owner);
  if (found == errors_.end()) return std::nullopt;
  return found->second.before + std::abs(found->second.last - found->second.first);
}

}  // namespace gpuledger::app
