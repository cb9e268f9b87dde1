// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "attribute/books/device_book.h"
#include "attribute/books/split.h"

// The part of a GPU's books for restarts: the saved state, and the energy that was used while there were no
// samples.
namespace gpuledger::attribute {
namespace {

// Ticks count from the boot, so those of two boots can be equal. No machine runs for 2^63 of them.
constexpr uint64_t kOfAnotherBoot = 1ull << 63;

// Passes of a CronJob and restarts are at most this far apart. After a longer gap an idle state is no longer known.
constexpr Nanoseconds kIdlenessLasts = std::chrono::minutes(10);

using ProcPlace = std::pair<ProcKey, std::optional<MigId>>;

}  // namespace

DeviceState DeviceBook::state(const std::string& boot_id) const {
  DeviceState state;
  state.uuid = description_->uuid;
  state.boot_id = boot_id;
  state.read_at = meter_.at().value_or(Timestamp{});
  state.counter = meter_.counter();
  if (!state.counter) state.power = meter_.power();
  state.doubted = meter_.doubted();
  state.measured = measured_;
  state.opening = opening_;
  state.counted_before = counted_before_;
  state.unattributed = unattributed_;
  state.xids = xids_;
  state.xid_seen = xid_seen_;
  for (const auto& [owner, book] : owners_) {
    OwnerState& saved = state.owners.emplace_back();
    saved.owner = owner;
    saved.booked = book.booked;
    saved.error = estimator_ ? estimator_->owner_error(book.id) : 0;
    saved.memory_peak = book.memory_peak;
    saved.uid = book.uid;
    saved.user_name = book.user_name;
    saved.users_differ = book.users_differ;
    saved.job = book.job;
    saved.steps_closed = book.steps_closed;
    if (book.accounts == 0) saved.gone_for = std::max(now_ - book.last_seen, Nanoseconds(0));
  }
  for (const auto& [of, booked] : closed_) state.closed.push_back({of.first, of.second, booked});
  state.accounts.reserve(accounts_.size());
  for (const auto& [key, account] : accounts_) {
    AccountState& saved = state.accounts.emplace_back();
    saved.identity = account.identity;
    saved.mig_id = std::get<1>(key);
    saved.mig = account.mig;
    saved.booked = account.booked;
    saved.inherited = account.inherited;
    saved.static_energy = account.static_energy;
    saved.memory_peak = account.memory_peak;
    saved.compute = account.compute;
    saved.graphics = account.graphics;
    saved.has_encoded = account.has_encoded;
    saved.has_decoded = account.has_decoded;
    if (estimator_) {
      const Claim claim = estimator_->claim(account.id);
      saved.claimed = claim.joules;
      saved.error = claim.error;
    }
    if (account.exited) {
      saved.gone_for = std::max(now_ - *account.exited, Nanoseconds(0));
    } else {
      saved.idle = account.idle.memory(now_);
    }
  }
  state.idle_floor = idle_floor_.memory();
  state.resident_floor = resident_floor_.memory();
  state.self_check = self_check_.memory();
  if (estimator_) state.learned = estimator_->memory();
  return state;
}

void DeviceBook::restore(const DeviceState& state, const std::string& boot_id, Timestamp at) {
  const bool same_boot = !boot_id.empty() && state.boot_id == boot_id;
  const Nanoseconds now = at.steady;
  now_ = now;
  // May change later; claims and errors pass on to the next one.
  use_estimator(Attribution::kAdaptive);
  measured_ = state.measured;
  opening_ = state.opening;
  counted_before_ = state.counted_before;
  unattributed_ = state.unattributed;
  xids_ = state.xids;
  xid_seen_ = state.xid_seen;
  for (const OwnerState& owner : state.owners) {
    OwnerBook& book = owners_[owner.owner];
    book.id = ++owners_opened_;
    ++ended_owners_;
    book.booked = owner.booked;
    book.memory_peak = owner.memory_peak;
    book.uid = owner.uid;
    book.user_name = owner.user_name;
    book.users_differ = owner.users_differ;
    book.job = owner.job;
    book.steps_closed = owner.steps_closed;
    book.last_seen = now - owner.gone_for.value_or(Nanoseconds(0));
    estimator_->settle_owner(book.id, owner.error);
  }
  for (const ClosedState& closed : state.closed) closed_[{closed.kind, closed.name_space}] += closed.booked;
  const Nanoseconds away = std::max(now - state.read_at.steady, Nanoseconds(0));
  for (const AccountState& account : state.accounts) {
    restore_account(account, same_boot, now);
    if (same_boot && away <= kIdlenessLasts) restore_idleness(account, now - away);
  }
  idle_floor_ = PowerFloor(state.idle_floor);
  resident_floor_ = PowerFloor(state.resident_floor);
  self_check_ = SelfCheck(state.self_check);
  if (!same_boot) return;
  estimator_->recall(state.learned);
  if (!state.counter && !state.power) return;
  // Either clock may have been set: the wall clock by hand, the steady one by moving to another namespace. A time that
  // is too long does not change the difference of a counter, but makes an integral of power too large.
  const Nanoseconds gap = state.counter ? std::max(away, at.wall - state.read_at.wall) : away;
  meter_ =
      EnergyMeter(state.counter, state.power, state.doubted, {now - std::max(gap, Nanoseconds(1)), state.read_at.wall});
  restored_ = true;
}

// Retention counts only time with samples: a process that exited in between exits now.
void DeviceBook::restore_account(const AccountState& state, bool same_boot, Nanoseconds now) {
  ProcessIdentity identity = state.identity;
  if (!same_boot && identity.key.start_ticks != 0) identity.key.start_ticks |= kOfAnotherBoot;
  const AccountKey key{identity.key, state.mig_id, identity.owner};
  const auto [entry, fresh] = accounts_.try_emplace(key, accounts_opened_ + 1, now);
  if (!fresh) return;
  Account& account = entry->second;
  accounts_opened_ = account.id;
  estimator_->settle(account.id, state.claimed, state.error);
  account.identity = std::move(identity);
  account.mig = state.mig;
  account.booked = state.booked;
  account.inherited = state.inherited;
  account.static_energy = state.static_energy;
  account.memory_peak = state.memory_peak;
  account.compute = state.compute;
  account.graphics = state.graphics;
  account.has_encoded = state.has_encoded;
  account.has_decoded = state.has_decoded;
  // Its owner must not be closed before the account is dropped.
  if (const auto owner = owners_.find(account.identity.owner); owner != owners_.end()) { join(account, owner->second); }
  if (state.gone_for) {
    account.exited = now - *state.gone_for;
  } else if (!same_boot) {
    account.exited = now;
  }
  account.was_there = !account.exited;
  if (account.exited) ++exited_;
}

// Idle time counts from the last observed activity, also over time without samples.
void DeviceBook::restore_idleness(const AccountState& state, Nanoseconds saved_at) {
  if (!state.idle || state.identity.key.start_ticks == 0) return;  // without a start it may be another process
  const auto found = accounts_.find(AccountKey{state.identity.key, state.mig_id, state.identity.owner});
  if (found != accounts_.end()) found->second.idle = IdleTracker(*state.idle, saved_at);
}

// There were no samples for longer than the driver keeps them: a restart or a stop of the program, a frozen or
// suspended machine, a GPU or driver that did not answer. One rule for all.
void DeviceBook::book_stall(const EnergyMeter::Step& step, const Present& present, const BookingRules& rules) {
  // No process survives a driver reload.
  if (step.restarted) return book_to_reason(step.energy, Reason::kExporterDown);
  book_absence(step.energy, step.time, survivors(present), rules);
}

DeviceBook::Survivors DeviceBook::survivors(const Present& present) {
  std::map<ProcPlace, Account*> before;
  for (auto& [key, account] : accounts_) {
    if (account.was_there) before[{std::get<0>(key), std::get<1>(key)}] = &account;
  }
  const bool mps = std::any_of(present.tenants.begin(), present.tenants.end(), [](auto& t) { return t.mps_client; });
  Survivors result;
  size_t here = 0;
  size_t lived = 0;
  for (size_t i = 0; i < present.who.size(); ++i) {
    const AccountKey& key = present.who[i]->first;
    const Account& account = present.who[i]->second;
    if (!present.has(account) || present.gone.contains(account.id)) continue;
    ++here;
    // Charged to its earlier account, because its owner may not be known again yet. A process without a start time may
    // be another one with the same pid.
    const auto known = before.find({std::get<0>(key), std::get<1>(key)});
    if (known == before.end() || std::get<0>(key).start_ticks == 0) continue;
    ++lived;
    const Tenant& tenant = present.tenants[i];
    if (mps && tenant.mps_server) continue;  // works only for its clients
    result.who.push_back(known->second);
    result.weights.push_back(tenant.mig_slices > 0 ? tenant.mig_slices * tenant.mig_part : 1.0);
  }
  result.others = here + before.size() - 2 * lived;

  // Weights are the usual watts of a process if they are known, else the mean of the known ones.
  std::vector<std::optional<double>> watts;
  double sum = 0;
  double known = 0;
  for (const Account* account : result.who) {
    watts.push_back(estimator_->usual_power(account->identity.key));
    sum += watts.back().value_or(0);
    known += watts.back() ? 1 : 0;
  }
  for (size_t i = 0; i < watts.size() && sum > 0; ++i) result.weights[i] = watts[i].value_or(sum / known);
  return result;
}

// Always estimated: even if one process was alone before and after, others may have come and gone.
void DeviceBook::book_absence(Energy energy, Nanoseconds time, const Survivors& survivors, const BookingRules& rules) {
  const size_t count = survivors.who.size();
  if (count == 0 || rules.attribution == Attribution::kMeasuredOnly) {
    return book_to_reason(energy, Reason::kExporterDown);
  }
  const Energy fixed = std::min(energy, energy_of(static_power(rules), time));
  const Energy dynamic = energy - fixed;
  constexpr double kScale = 1e9;
  const double sum = std::accumulate(survivors.weights.begin(), survivors.weights.end(), 0.0);
  std::vector<uint64_t> weights;
  for (double weight : survivors.weights) {
    weights.push_back(sum > 0 ? static_cast<uint64_t>(std::llround(weight / sum * kScale)) : 1);
  }
  const std::vector<Energy> parts = split_exactly(dynamic, weights);
  if (rules.static_power == StaticPower::kEqual) weights.assign(count, 1);
  const bool separate = rules.static_power == StaticPower::kSeparate;
  if (separate) book_to_reason(fixed, Reason::kStatic);
  const std::vector<Energy> static_parts = split_exactly(separate ? Energy() : fixed, weights);
  for (size_t i = 0; i < count; ++i) {
    Account& account = *survivors.who[i];
    book_to(account, parts[i], false, false);
    book_to(account, static_parts[i], false, true);
    // Worst case: one process used all the energy, a survivor or one that came or left. Its probability is its share.
    // At least one process that came or left is assumed.
    const size_t others = std::max<size_t>(survivors.others, 1);
    const double present = static_cast<double>(count) / static_cast<double>(count + others);
    const double share = dynamic > Energy() ? parts[i].joules() / dynamic.joules() * present : 0;
    const double error = dynamic.joules() * std::sqrt(share * (1 - share));
    estimator_->settle(account.id, parts[i].joules(), error);
    estimator_->settle_owner(owner_of(account).id, error);
  }
}

}  // namespace gpuledger::attribute
