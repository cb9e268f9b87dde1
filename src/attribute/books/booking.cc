// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "attribute/books/device_book.h"
#include "attribute/books/split.h"

// The part of a GPU's books that charges a step's energy.
namespace gpuledger::attribute {
namespace {

// The driver keeps utilization samples for at least 10 s: a longer step would be split by its last seconds alone.
constexpr Nanoseconds kUtilizationMemory = std::chrono::seconds(10);
// Period of the process lists: if one process replaces another within it, they seem to overlap.
constexpr Nanoseconds kListPeriod = std::chrono::milliseconds(100);
// Short peaks exceed the enforced limit; no GPU draws a quarter more for a whole step.
constexpr double kPeakOverLimit = 1.25;

}  // namespace

// After a failed utilization call the next one covers this time too. One longer step is better than
// joules split without evidence. The driver keeps its samples only for kUtilizationMemory.
bool DeviceBook::wait_for_utilization(const DeviceSample& sample, const Present& present, Nanoseconds pending) const {
  return sample.utilization == UtilizationState::kFailed && present.who.size() > 1 && pending < kUtilizationMemory;
}

// The meter has left out what is impossible. This was counted, but no process can be charged for it.
bool DeviceBook::beyond_belief(Energy energy, Nanoseconds time) const {
  if (!highest_limit_) return false;
  return energy > energy_of(Power::watts(highest_limit_->watts() * kPeakOverLimit), time + kCounterRefresh);
}

bool DeviceBook::book(const EnergyMeter::Step& step, const Present& present, const DeviceSample& sample,
                      const BookingRules& rules) {
  if (beyond_belief(step.energy, step.time)) {
    book_to_reason(step.energy, Reason::kAnomaly);
    return false;
  }
  // A GPU or driver that was lost has no earlier utilization samples.
  const Nanoseconds memory = down_since_ ? Nanoseconds(0) : kUtilizationMemory;
  if (restored_ || step.time > std::max(memory, 2 * rules.sample_interval)) {
    book_stall(step, present, rules);
    return false;
  }
  if (present.who.empty()) {
    const bool somebody = sample.gpu_utilization && sample.gpu_utilization->value > 0 && last_crowd_ == 0;
    book_to_reason(step.energy, somebody ? Reason::kUnseen : Reason::kIdle);
  } else {
    book_to_tenants(step, present, sample, rules);
  }
  return !step.restarted;
}

// No process worked: all watts are static.
bool DeviceBook::quiet(const DeviceSample& sample, const Present& present) {
  if (present.anyone_working) return false;
  constexpr double kNothing = 0.005;  // GPM resolution
  if (sample.activity && sample.activity->graphics) return sample.activity->graphics->value < kNothing;
  if (sample.utilization != UtilizationState::kKnown) return false;
  return !sample.gpu_utilization || sample.gpu_utilization->value <= 0;
}

void DeviceBook::book_to_tenants(const EnergyMeter::Step& step, const Present& present, const DeviceSample& sample,
                                 const BookingRules& rules) {
  const bool alone = present.who.size() == 1;
  const Energy fixed =
      quiet(sample, present) ? step.energy : std::min(step.energy, energy_of(static_power(rules), step.time));
  const Energy dynamic = step.energy - fixed;
  const bool separate = rules.static_power == StaticPower::kSeparate;
  auto shares = gpu_time_shares(sample.utilization, present.tenants);
  if (!shares) shares = shares_by_turns(step, present, sample, now_);
  const Step observed = observation(step, present, sample, shares, dynamic);
  const bool estimated = estimator_->observe(observed);
  add_gpu_time(present, shares, step.time);
  if (estimated && !step.restarted) check_split(observed, present);
  if (!estimated) {
    book_to_reason(fixed, separate ? Reason::kStatic : Reason::kUnseen);
    book_to_reason(dynamic, Reason::kUnseen);
    return;
  }
  std::vector<double> weights = shares.value_or(std::vector(1, 1.0));
  book_claims(dynamic, present, weights, alone);
  if (separate) return book_to_reason(fixed, Reason::kStatic);
  // Static watts are split by the energy of this step, without corrections.
  std::vector<double> spent;
  for (const auto& who : present.who) spent.push_back(estimator_->claim(who->second.id).last_joules);
  if (std::any_of(spent.begin(), spent.end(), [](double joules) { return joules > 0; })) weights = std::move(spent);
  if (rules.static_power == StaticPower::kEqual) weights.assign(weights.size(), 1.0);
  book_weighted(fixed, weights, present, true);
}

std::optional<std::vector<double>> DeviceBook::shares_by_turns(const EnergyMeter::Step& step, const Present& present,
                                                               const DeviceSample& sample, Nanoseconds now) {
  if (sample.utilization != UtilizationState::kUnsupported) return std::nullopt;
  std::vector<std::pair<Nanoseconds, Nanoseconds>> turns;
  std::vector<double> shares;
  for (const auto& [from, to] : present.stays) {
    const auto& turn = turns.emplace_back(std::clamp(from, now - step.time, now), std::clamp(to, now - step.time, now));
    shares.push_back(std::chrono::duration<double>(turn.second - turn.first) / step.time);
  }
  // When one replaced another is known only as exactly as the lists are read. But two of whom neither came, or neither
  // left, did not replace each other, however short the step is.
  const auto came = [](const auto& stay) { return stay.first > Nanoseconds(0); };
  const auto left = [](const auto& stay) { return stay.second < Nanoseconds::max(); };
  const auto all_but_one = static_cast<std::ptrdiff_t>(present.stays.size()) - 1;
  if (std::count_if(present.stays.begin(), present.stays.end(), came) < all_but_one) return std::nullopt;
  if (std::count_if(present.stays.begin(), present.stays.end(), left) < all_but_one) return std::nullopt;
  std::sort(turns.begin(), turns.end());
  for (size_t i = 1; i < turns.size(); ++i) {
    if (turns[i - 1].second > turns[i].first + kListPeriod) return std::nullopt;
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (sum <= 0) return std::nullopt;
  for (double& share : shares) share /= std::max(1.0, sum);
  return shares;
}

void DeviceBook::book_to_reason(Energy energy, Reason reason) {
  unattributed_[static_cast<size_t>(reason)] += energy;
}

// An account is owed its claim minus what is booked, and the step's joules go to the accounts that are owed. So wrong
// charges are corrected later, no counter falls, and only measured joules are booked. A process on the GPU gets at
// least half of what it uses now, so that a correction never looks like a stop.
void DeviceBook::book_claims(Energy dynamic, const Present& present, const std::vector<double>& shares, bool alone) {
  std::vector<Account*> payees;
  std::vector<uint64_t> weights;
  const auto add = [&](Account& account, double least) {
    const double weight = std::max(owed(account), least);
    if (weight <= 0) return;
    payees.push_back(&account);
    weights.push_back(static_cast<uint64_t>(std::llround(weight * 1e6)));
  };
  for (const auto& who : present.who)
    add(who->second, constants_.least_pace * estimator_->claim(who->second.id).last_joules);
  const size_t payees_here = payees.size();
  // Not for longer, because its last scrape is near.
  const Nanoseconds after_exit =
      std::chrono::round<Nanoseconds>(std::chrono::duration<double>(constants_.debt_after_exit));
  if (exited_ > 0) {
    for (auto& [key, account] : accounts_) {
      if (!account.exited || now_ - *account.exited > after_exit || present.has(account)) continue;
      add(account, 0);
    }
  }
  if (payees.empty()) return book_weighted(dynamic, shares, present, false);
  const std::vector<Energy> parts = split_exactly(dynamic, weights);
  for (size_t i = 0; i < parts.size(); ++i) book_to(*payees[i], parts[i], alone && i < payees_here, false);
}

void DeviceBook::book_weighted(Energy energy, const std::vector<double>& shares, const Present& present,
                               bool is_static) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  constexpr double kScale = 1e9;  // ratios as integers; one part in 10^9 is far below a sample
  std::vector<uint64_t> weights;
  for (double share : shares) {
    weights.push_back(sum > 0 ? static_cast<uint64_t>(std::llround(share / sum * kScale)) : 1);
  }
  const std::vector<Energy> parts = split_exactly(energy, weights);
  for (size_t i = 0; i < parts.size(); ++i) {
    book_to(present.who[i]->second, parts[i], present.who.size() == 1, is_static);
  }
}

void DeviceBook::book_to(Account& account, Energy energy, bool alone, bool is_static) {
  // With an inferred owner the joules count as estimated, even if exact.
  const bool measured = alone && !account.identity.owner_inferred;
  (measured ? account.booked.alone : account.booked.shared) += energy;
  OwnerBook& owner = owner_of(account);
  (measured ? owner.booked.alone : owner.booked.shared) += energy;
  owner.last_seen = now_;
  if (std::exchange(account.charged_in, charges_) != charges_) account.last_step = Energy();
  account.last_step += energy;
  if (is_static) account.static_energy += energy;
}

void DeviceBook::join(Account& account, OwnerBook& owner) {
  if (owner.accounts++ == 0) --ended_owners_;
  account.owner = &owner;
  // Also here, because the process may be gone before all processes are next looked at.
  note_user(account.identity, owner);
  note_job(account.identity.job, owner);
}

DeviceBook::OwnerBook& DeviceBook::owner_of(Account& account) {
  if (account.owner == nullptr) {
    OwnerBook& owner = owners_[account.identity.owner];
    if (owner.id == 0) {
      owner.id = ++owners_opened_;
      ++ended_owners_;
    }
    owner.last_seen = now_;
    join(account, owner);
  }
  return *account.owner;
}

void DeviceBook::add_gpu_time(const Present& present, const std::optional<std::vector<double>>& shares,
                              Nanoseconds time) {
  gpu_time_source_ = GpuTimeSource::kNone;
  for (size_t i = 0; i < present.who.size(); ++i) {
    const Tenant& tenant = present.tenants[i];
    if (!shares || tenant.mig_slices > 0) continue;  // slices do not tell which process worked
    Account& account = present.who[i]->second;
    const double sampled = std::min(1.0, (*shares)[i]) * std::chrono::duration<double>(time).count();
    // The estimate for the end of the last step may fall. Then the counter does not rise.
    const Claim claim = estimator_->claim(account.id);
    const double busy = claim.seconds ? std::max(0.0, *claim.seconds - account.seconds_booked) : sampled;
    account.seconds_booked += busy;
    gpu_time_source_ = claim.traced ? GpuTimeSource::kTrace : std::max(gpu_time_source_, GpuTimeSource::kSamples);
    const Nanoseconds used(std::llround(busy * 1e9));
    account.booked.add_gpu_time(used);
    owner_of(account).booked.add_gpu_time(used);
  }
}

// Steps that are left out end the comparisons under way. Under MPS and MIG the GPU time of a process is not known.
void DeviceBook::check_split(const Step& observed, const Present& present) {
  if (observed.evidence != TimeEvidence::kSamples) return;
  std::vector<SelfCheck::Process> processes;
  for (const auto& who : present.who) {
    const Account& account = who->second;
    processes.push_back({account.id, estimator_->claim(account.id).joules, account.seconds_booked});
  }
  self_check_.observe(observed.begin, observed.end, observed.dynamic_joules, processes);
}

void DeviceBook::learn_floors(const EnergyMeter::Step& step, const Present& present, const DeviceSample& sample) {
  // Not while processes come or go: clocks and heat follow with a delay.
  if (present.who.size() != last_crowd_ || !quiet(sample, present)) return;
  (present.who.empty() ? idle_floor_ : resident_floor_).observe(step.energy, step.time);
}

// The defaults are replaced by the GPU's own value as soon as all processes are quiet.
Power DeviceBook::static_power(const BookingRules& rules) const {
  if (rules.idle_power) return *rules.idle_power;
  if (const auto resident = resident_floor_.value()) return *resident;
  if (const auto idle = idle_floor_.value()) return Power::watts(idle->watts() * constants_.resident_over_idle);
  return Power::watts(description_->power_limit.value_or(Power()).watts() * constants_.resident_of_limit);
}

}  // namespace gpuledger::attribute
