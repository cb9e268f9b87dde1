// SPDX-License-Identifier: Apache-2.0
#include "app/bill/gpu_books.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gpuledger::app {
namespace {

constexpr int64_t kMillijoule = 1000;
// The last scrape before a step may be five minutes older than the step, and clocks differ.
constexpr int64_t kPatienceMs = 360'000;

bool differ(const std::optional<int64_t>& a, const std::optional<int64_t>& b) {
  return a && b && *a != *b;
}

}  // namespace

void GpuBooks::keep_run(const GpuReading& reading, std::optional<int64_t> started_ms) {
  // What one scrape lacks, because it is there only in part, the one before had.
  if (reading.opened_ms) opened_ms_ = reading.opened_ms;
  if (reading.run) run_ = reading.run;
  if (started_ms) started_ms_ = started_ms;
}

void GpuBooks::open(const GpuReading& reading, int64_t at_ms, std::optional<int64_t> started_ms) {
  if (first_ms_ == 0) first_ms_ = at_ms;
  at_ms_ = at_ms;
  keep_run(reading, started_ms);
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
  keep_run(reading, std::nullopt);
}

bool GpuBooks::changed(const GpuReading& reading, std::optional<int64_t> started_ms) const {
  return differ(reading.run, run_) || judge(reading, started_ms) != Step::kWentOn ||
         std::any_of(reading.accounts.begin(), reading.accounts.end(), [&](const auto& now) {
           const auto before = booked_.find(now.first);
           return before != booked_.end() && now.second < before->second - kMillijoule;
         });
}

GpuBooks::Step GpuBooks::judge(const GpuReading& reading, std::optional<int64_t> started_ms) const {
  const bool fell = reading.energy < energy_ - reading.rounding();
  if (reading.opened_ms && reading.opened_ms != opened_ms_) {
    if (*reading.opened_ms >= at_ms_ - kPatienceMs) return Step::kBeganAgain;
    if (opened_ms_) return Step::kWentBack;
  }
  if (opened_ms_ && reading.opened_ms) {
    const bool earlier_run = reading.run && run_ && *reading.run < *run_;
    return fell || earlier_run ? Step::kWentBack : Step::kWentOn;
  }
  return fell || differ(started_ms, started_ms_) ? Step::kUnclear : Step::kWentOn;
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

GpuBooks::Step GpuBooks::advance(const GpuReading& reading, int64_t at_ms, std::optional<int64_t> started_ms,
                                 const Rates& rates, BillFacts& facts) {
  const Step step = judge(reading, started_ms);
  if (step == Step::kWentBack || step == Step::kUnclear) {
    keep_errors();
    open(reading, at_ms, started_ms);
    return step;
  }
  // Not later than the reading: its clock may have been ahead when they were opened.
  if (step == Step::kBeganAgain) begin_again(std::max(at_ms_, std::min(at_ms, *reading.opened_ms)));
  keep_run(reading, started_ms);
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
