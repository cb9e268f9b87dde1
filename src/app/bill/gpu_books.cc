// SPDX-License-Identifier: Apache-2.0
#include "app/bill/gpu_books.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

namespace gpuledger::app {
namespace {

constexpr int64_t kMillijoule = 1000;
// The last scrape before a step may be five minutes older than the step, and clocks differ.
constexpr int64_t kPatienceMs = 360'000;
constexpr int64_t kClockSetMs = 60'000;  // a boot time moves when the clock is set

bool differ(const std::optional<int64_t>& a, const std::optional<int64_t>& b) {
  return a && b && *a != *b;
}

}  // namespace

void GpuBooks::keep_run(const GpuReading& reading, const ScrapeTimes& times) {
  // What one scrape lacks, because it is there only in part, the one before had.
  if (reading.opened_ms && opened_ms_ && *reading.opened_ms != *opened_ms_) earlier_.insert(*opened_ms_);
  if (reading.opened_ms) opened_ms_ = reading.opened_ms;
  if (reading.run) run_ = reading.run;
  if (times.started_ms) started_ms_ = times.started_ms;
  if (times.snapshot_ms) snapshot_ms_ = times.snapshot_ms;
  if (times.booted_ms) booted_ms_ = times.booted_ms;
}

void GpuBooks::open(const GpuReading& reading, const ScrapeTimes& times) {
  if (first_ms_ == 0) first_ms_ = times.at_ms;
  at_ms_ = times.at_ms;
  keep_run(reading, times);
  energy_ = reading.energy;
  booked_ = reading.accounts;
  remainder_ = {reading.closed.begin(), reading.closed.end()};
  for (const auto& [owner, error] : reading.standard_errors) {
    Errors& errors = errors_[owner];
    errors.first = errors.last = error;
  }
}

void GpuBooks::open_at_zero(const GpuReading& reading, int64_t at_ms) {
  first_ms_ = at_ms_ = at_ms;
  keep_run(reading, {});
}

void GpuBooks::take_over(GpuBooks& other) {
  keep_errors();
  at_ms_ = other.at_ms_;
  if (first_ms_ == 0) first_ms_ = at_ms_;
  std::tie(opened_ms_, run_, started_ms_) = std::tie(other.opened_ms_, other.run_, other.started_ms_);
  std::tie(snapshot_ms_, booted_ms_, earlier_) = std::tie(other.snapshot_ms_, other.booted_ms_, other.earlier_);
  std::tie(energy_, booked_, remainder_) = std::tie(other.energy_, other.booked_, other.remainder_);
  for (const auto& [owner, errors] : other.errors_) errors_[owner].first = errors_[owner].last = errors.last;
  taken_over_ = false;
  other.taken_over_ = true;
}

bool GpuBooks::changed(const GpuReading& reading, const ScrapeTimes& times) const {
  return reading.opened_ms.has_value() != opened_ms_.has_value() || judge(reading, times) != Step::kWentOn ||
         std::any_of(reading.accounts.begin(), reading.accounts.end(), [&](const auto& now) {
           const auto before = booked_.find(now.first);
           return before != booked_.end() && now.second < before->second - kMillijoule;
         });
}

GpuBooks::Step GpuBooks::judge(const GpuReading& reading, const ScrapeTimes& times) const {
  const bool fell = reading.energy < energy_ - reading.rounding();
  const bool restarted = differ(times.started_ms, started_ms_);
  if (!reading.opened_ms || !opened_ms_) {
    // Nothing is guessed, but that a release which says it has followed one that does not.
    const bool opened_since = reading.opened_ms && *reading.opened_ms >= at_ms_ - kPatienceMs;
    if (fell || restarted) return opened_since ? Step::kBeganAgain : Step::kUnclear;
    return Step::kWentOn;
  }
  if (*reading.opened_ms != *opened_ms_) {
    const bool opened_since = *reading.opened_ms >= at_ms_ - kPatienceMs && !earlier_.contains(*reading.opened_ms);
    return opened_since ? Step::kBeganAgain : Step::kWentBack;
  }
  if (fell || (reading.run && run_ && *reading.run < *run_)) return Step::kWentBack;
  // A state from a backup may have led to the same number again.
  if (!differ(reading.run, run_)) return restarted ? Step::kWentBack : Step::kWentOn;
  const bool booted = times.booted_ms && booted_ms_ && std::abs(*times.booted_ms - *booted_ms_) > kClockSetMs;
  return booted ? Step::kBooted : Step::kReadBack;
}

// Whether it is a scrape that was taken already, or an older one: of a node that had another name meanwhile, of two
// servers with different clocks, or as a server shows it for some minutes more. The exporter's clock may have been set
// back, so a counter that is higher is newer.
bool GpuBooks::is_known(const GpuReading& reading, const ScrapeTimes& times) const {
  if (!are_of(reading)) return false;
  const bool shown = times.snapshot_ms && snapshot_ms_ && *times.snapshot_ms <= *snapshot_ms_;
  return times.at_ms < at_ms_ || (shown && reading.energy <= energy_);
}

void GpuBooks::pass_time(int64_t at_ms) {
  metered_ms_ += std::max<int64_t>(at_ms - at_ms_, 0);
  at_ms_ = std::max(at_ms, at_ms_);
}

void GpuBooks::begin_again(int64_t at_ms) {
  at_ms_ = at_ms;
  energy_ = 0;
  booked_.clear();
  remainder_.clear();
  keep_errors();
}

void GpuBooks::keep_errors() {
  for (auto& [owner, errors] : errors_) {
    errors.before += std::abs(errors.last - errors.first);
    errors.first = errors.last = 0;
  }
}

void GpuBooks::spend(const BillAccount& account, Wide amount, const Rates& rates) {
  Spent& spent = spent_[{account.owner, rates.period}];
  switch (account.group.quantity) {
    case BillQuantity::kGpuTime: spent.gpu_time = spent.gpu_time.value_or(0) + amount; return;
    case BillQuantity::kAlone: spent.alone += amount; break;
    case BillQuantity::kShared: spent.shared += amount; break;
  }
  spent.co2e_grams += static_cast<double>(amount) * rates.grams_per_microjoule;
}

// The closed accounts, without what was booked to accounts that are in them now.
void GpuBooks::book_ended(const GpuReading& reading, std::map<BillGroup, std::map<BillAccount, int64_t>>& fresh,
                          const Rates& rates, BillFacts& facts) {
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
      spend(account, -past, rates);
      rise += past;
    }
    remainder_[group] = value;
    if (rise != 0) spend({group, ended_owner(group.kind, group.name_space, facts)}, rise, rates);
  }
}

GpuBooks::Step GpuBooks::advance(const GpuReading& reading, const ScrapeTimes& times, const Rates& rates,
                                 BillFacts& facts) {
  if (is_known(reading, times)) {
    pass_time(times.at_ms);
    return Step::kWentOn;
  }
  const Step step = judge(reading, times);
  if (step == Step::kWentBack || step == Step::kUnclear) {
    keep_errors();
    open(reading, times);
    return step;
  }
  // Not later than the reading: its clock may have been ahead when they were opened.
  if (step == Step::kBeganAgain) begin_again(std::max(at_ms_, std::min(times.at_ms, *reading.opened_ms)));
  keep_run(reading, times);
  meter_ += reading.energy - energy_;
  energy_ = reading.energy;
  pass_time(times.at_ms);
  std::map<BillGroup, std::map<BillAccount, int64_t>> fresh;
  for (const auto& [account, value] : reading.accounts) {
    const auto [booked, is_new] = booked_.try_emplace(account, 0);
    const int64_t rise = value - booked->second;
    booked->second = value;
    if (is_new) fresh[account.group].emplace(account, value);
    if (rise != 0 || is_new) spend(account, rise, rates);
  }
  book_ended(reading, fresh, rates, facts);
  for (const auto& [owner, error] : reading.standard_errors) errors_[owner].last = error;
  return step;
}

std::map<std::string, Wide> GpuBooks::owing() const {
  std::map<std::string, Wide> owners;
  for (const auto& [charge, spent] : spent_) owners[charge.first] -= spent.alone + spent.shared;
  std::erase_if(owners, [](const auto& owner) { return owner.second <= 10 * kMillijoule; });
  return owners;
}

std::optional<double> GpuBooks::standard_error(const std::string& owner) const {
  const auto found = errors_.find(owner);
  if (found == errors_.end()) return std::nullopt;
  return found->second.before + std::abs(found->second.last - found->second.first);
}

}  // namespace gpuledger::app
