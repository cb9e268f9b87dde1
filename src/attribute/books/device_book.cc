// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/device_book.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/most_power.h"

namespace gpuledger::attribute {
namespace {

// Different ones of a GPU. NVIDIA lists fewer than two hundred, and a sick GPU has a few of them.
constexpr size_t kMostXids = 64;

}  // namespace

DeviceBook::DeviceBook(std::shared_ptr<const DeviceDescription> description, const Constants& constants,
                       Nanoseconds opened_at)
    : description_(std::move(description)),
      opening_(BooksOpening{std::chrono::floor<std::chrono::milliseconds>(opened_at)}),
      constants_(constants) {}

void DeviceBook::advance(const DeviceSample& sample, const SampleBatch& batch, const IdentityMap& identities,
                         const BookingRules& rules) {
  description_ = sample.description;
  count_xids(sample, batch.at.wall);
  if (!sample.up) {
    mark_down(batch.at.steady);
    return;
  }
  up_ = true;

  const Timestamp at = sample.read_at.value_or(batch.at);
  const bool again = std::exchange(read_at_, at.steady) == at.steady;
  now_ = at.steady;
  use_estimator(rules.attribution);
  const Present present = gather(sample, identities);
  const auto& limit = description_->power_limit;
  if (limit && is_power_limit(*limit)) highest_limit_ = std::max(highest_limit_, limit);
  const auto step = meter_.read(sample, at, most_power(highest_limit_));
  if (!again) refused_readings_ += sample.refused_readings + (meter_.refused() ? 1 : 0);
  if (step) {
    if (wait_for_utilization(sample, present, step->time)) return;
    begin_step(step->energy);
    const bool ordinary = book(*step, present, sample, rules);
    if (ordinary) learn_floors(*step, present, sample);
    last_crowd_ = present.who.size();
    down_since_.reset();
  }
  const bool closed = meter_.close(sample, at);
  if (closed) restored_ = false;
  if (step && closed) note_counter(sample);
  retire_missing(present, closed);
}

void DeviceBook::count_xids(const DeviceSample& sample, Nanoseconds seen) {
  for (const uint64_t xid : sample.xids) {
    if (xids_.size() >= kMostXids && !xids_.contains(xid)) {
      ++refused_readings_;
      continue;
    }
    ++xids_[xid];
    xid_seen_[xid] = seen++;
  }
}

void DeviceBook::begin_step(Energy energy) {
  measured_ += energy;
  last_step_ = energy;
  ++charges_;
}

// Called when all new energy is booked, so that the rest is from before. Not at the first reading: if it is false, only
// the next ones show it.
void DeviceBook::note_counter(const DeviceSample& sample) {
  if (!counted_before_ && sample.energy_counter) {
    counted_before_ = std::max(Energy(), *sample.energy_counter - measured_);
  }
}

void DeviceBook::mark_down(Nanoseconds now) {
  if (std::exchange(up_, false) || !down_since_) down_since_ = now;
  for (auto& [key, account] : accounts_) {
    account.forget_gauges();
    account.idle.observe(DeviceSample{}, EngineUse{}, Nanoseconds(0));  // blind
  }
}

void DeviceBook::evaluate_idleness() {
  for (auto& [key, account] : accounts_) {
    if (!account.exited) account.idle.evaluate();
  }
}

// A charge that is too low or too high is an error too until it is corrected.
double DeviceBook::standard_error(const Account& account, double owed) const {
  if (!estimator_) return 0;
  return std::hypot(estimator_->claim(account.id).error, account.booked.shared > Energy() ? owed : 0);
}

double DeviceBook::owner_standard_error(const OwnerBook& owner, double owed) const {
  if (!estimator_) return 0;
  return std::hypot(estimator_->owner_error(owner.id), owner.booked.shared > Energy() ? owed : 0);
}

// Joules above the static watts that the account lacks; below 0: it has too much.
double DeviceBook::owed(const Account& account) const {
  return estimator_->claim(account.id).joules - (account.booked.total() - account.static_energy).joules();
}

void DeviceBook::write_to(Ledger& ledger, Timestamp at, const BookingRules& rules) const {
  DeviceAccount device;
  device.description = description_;
  device.up = up_;
  device.measured = measured_;
  device.unattributed = unattributed_;
  device.idle_power = rules.idle_power ? rules.idle_power : idle_floor_.value();
  device.opening = opening_;
  device.counted_before = counted_before_;
  device.refused_readings = refused_readings_;
  device.last_step = last_step_;
  device.gpu_time_source = gpu_time_source_;
  device.attribution_error = self_check_.error_ratio();
  device.attribution_comparisons = self_check_.comparisons();
  device.xids = xids_;
  device.xid_seen = xid_seen_;
  ledger.devices.push_back(std::move(device));

  struct Sums {
    std::optional<Bytes> idle_memory;  // empty: it has no accounts
    double owed = 0;
    bool living = false;
  };
  // Their processes may have exited meanwhile.
  const bool lost = !up_ && down_since_ && at.steady - *down_since_ > rules.retention;
  size_t places = 0;
  for (const auto& [owner, book] : owners_) book.place = ++places;
  std::vector<Sums> by_owner(places + 1);  // by the owner's place; the first is for accounts without owner
  for (const auto& [key, account] : accounts_) {
    Sums& sums = by_owner[account.owner ? account.owner->place : 0];
    const double owes = estimator_ ? owed(account) : 0;
    sums.owed += owes;
    ProcessAccount& process = ledger.processes.emplace_back();
    process.gpu = description_->uuid;
    process.gpu_index = description_->index;
    process.mig = account.mig;
    process.identity = account.identity;
    process.active = !account.exited && !lost;
    sums.living |= process.active;
    process.booked = account.booked;
    process.booked += account.inherited;
    if (account.charged_in == charges_) process.last_step = account.last_step;
    process.static_energy = account.static_energy;
    process.standard_error_joules = standard_error(account, owes);
    process.sm = account.sm;
    process.memory_utilization = account.memory_utilization;
    process.encoder = account.encoder;
    process.decoder = account.decoder;
    process.memory = account.memory;
    process.memory_peak = account.memory_peak;
    process.compute = account.compute;
    process.graphics = account.graphics;
    if (!process.active) {
      process.gone_for = at.steady - account.exited.value_or(now_);
      process.idle.evaluated = account.idle.state(at.steady).evaluated;
    } else {
      process.idle = account.idle.state(at.steady);
    }
    if (!sums.idle_memory) sums.idle_memory = Bytes{};
    if (process.idle.idle && process.memory) sums.idle_memory->count += process.memory->count;
  }
  for (const auto& [owner, book] : owners_) {
    OwnerAccount& account = ledger.owners.emplace_back();
    account.owner = owner;
    account.gpu = description_->uuid;
    account.gpu_index = description_->index;
    account.booked = book.booked;
    const Sums& sums = by_owner[book.place];
    account.standard_error_joules = owner_standard_error(book, sums.owed);
    account.idle_memory = sums.idle_memory;
    account.memory_peak = book.memory_peak;
    account.uid = book.uid;
    account.user_name = book.user_name;
    account.job = book.job;
    account.steps_closed = book.steps_closed;
    if (!sums.living) account.gone_for = std::max(at.steady - book.last_seen, Nanoseconds(0));
  }
  for (const auto& [of, booked] : closed_) {
    ledger.closed.push_back({of.first, of.second, description_->uuid, description_->index, booked});
  }
}

}  // namespace gpuledger::attribute
