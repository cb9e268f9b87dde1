// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "attribute/books/device_book.h"

// The part of a GPU's books that makes the estimator's input.
namespace gpuledger::attribute {
namespace {

// MHz; only a unit.
constexpr double kReferenceClock = 1980;

double seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Reading reading_of(const Activity& activity, std::optional<double> clock_mhz) {
  Reading reading;
  reading.clock = clock_mhz.value_or(kReferenceClock) / kReferenceClock;
  if (activity.graphics) reading.busy = activity.graphics->value;
  for (size_t part = 0; part < Activity::kParts; ++part) {
    if (activity.parts[part]) reading.parts[part] = activity.parts[part]->value;
  }
  return reading;
}

TimeEvidence evidence_of(const DeviceSample& sample, const std::vector<Tenant>& tenants, bool shares_known) {
  if (!shares_known) return TimeEvidence::kNone;
  if (sample.utilization != UtilizationState::kKnown) return TimeEvidence::kSlices;
  const bool mps = std::any_of(tenants.begin(), tenants.end(), [](const Tenant& t) { return t.mps_client; });
  return mps ? TimeEvidence::kMps : TimeEvidence::kSamples;
}

}  // namespace

// Counters continue under a new rule: booked joules count as claimed.
void DeviceBook::use_estimator(Attribution attribution) {
  if (attribution_ == attribution) return;
  std::unique_ptr<Estimator> next = make_estimator(attribution, constants_, description_->model);
  for (auto& [key, account] : accounts_) {
    account.seconds_booked = 0;
    const Energy dynamic = account.booked.total() - account.static_energy;
    next->settle(account.id, dynamic.joules(), estimator_ ? estimator_->claim(account.id).error : 0);
  }
  for (const auto& [owner, book] : owners_)
    next->settle_owner(book.id, estimator_ ? estimator_->owner_error(book.id) : 0);
  if (estimator_) next->recall(estimator_->memory());
  self_check_.interrupt();
  estimator_ = std::move(next);
  attribution_ = attribution;
}

Step DeviceBook::observation(const EnergyMeter::Step& step, const Present& present, const DeviceSample& sample,
                             const std::optional<std::vector<double>>& shares, Energy dynamic) {
  Step observed;
  observed.end = seconds(now_);
  observed.begin = seconds(now_ - step.time);
  observed.dynamic_joules = dynamic.joules();
  observed.full_watts = std::max(1.0, description_->power_limit.value_or(Power::watts(300)).watts());
  observed.quiet = quiet(sample, present);
  observed.evidence = evidence_of(sample, present.tenants, shares.has_value());
  observed.shares = shares.value_or(std::vector(present.who.size(), 0.0));
  add_members(present, observed);
  add_readings(sample, observed);
  add_residency(present, sample, observed);
  const double fixed = (step.energy - dynamic).joules() / seconds(step.time);
  for (const PowerReading& reading : sample.power_readings) {
    observed.power.push_back({seconds(reading.at), reading.power.watts() - fixed});
  }
  return observed;
}

void DeviceBook::add_members(const Present& present, Step& observed) {
  std::vector<double> shares;
  for (size_t i = 0; i < present.who.size(); ++i) {
    const Tenant& tenant = present.tenants[i];
    if (observed.evidence == TimeEvidence::kMps && tenant.mps_server) continue;  // works only for its clients
    Account& account = present.who[i]->second;
    Member member;
    member.account = account.id;
    member.owner = owner_of(account).id;
    member.kin = account.kin;
    member.process = account.identity.key;
    member.busy = observed.shares[i];
    const auto& [from, to] = present.stays[i];
    member.from = std::clamp(seconds(from), observed.begin, observed.end);
    member.to = std::clamp(seconds(to), observed.begin, observed.end);
    observed.members.push_back(member);
    shares.push_back(observed.shares[i]);
  }
  observed.shares = std::move(shares);
}

// If a recording has no contended time: all of a bin with two or more processes.
void DeviceBook::add_residency(const Present& present, const DeviceSample& sample, Step& observed) {
  if (sample.residency.empty()) return;
  std::map<Pid, uint64_t> accounts;
  for (const auto& who : present.who) accounts[who->second.identity.key.pid] = who->second.id;
  for (const ResidencyBin& bin : sample.residency) {
    ResidencySlot slot;
    slot.to = seconds(bin.end);
    slot.from = seconds(bin.end - bin.width);
    for (const Residency& resident : bin.residents) {
      const auto account = accounts.find(resident.pid);
      const Nanoseconds contended =
          resident.contended.value_or(bin.residents.size() > 1 ? resident.resident : Nanoseconds(0));
      // An unknown process had the engine: no other process gets this time.
      slot.times.push_back(
          {account == accounts.end() ? 0 : account->second, seconds(resident.resident), seconds(contended)});
    }
    observed.residency.push_back(std::move(slot));
  }
}

// Readings of the monitors are one refresh old (measured on an H200 with readings 0.1 s apart: power is 0.15 s ahead
// of the middle of the reading's interval).
// Ten a second if there are glances, else one for the whole step. Without monitors the busy time is the share of
// driver samples that name a process.
void DeviceBook::add_readings(const DeviceSample& sample, Step& observed) const {
  double last = observed.begin - constants_.monitor_delay;
  for (const ActivityReading& fine : sample.activity_readings) {
    Reading reading = reading_of(fine.activity, fine.sm_clock_mhz ? fine.sm_clock_mhz : sample.sm_clock_mhz);
    reading.to = seconds(fine.at) - constants_.monitor_delay;
    reading.from = std::max(last, reading.to - 2 * constants_.monitor_refresh);
    last = reading.to;
    observed.readings.push_back(reading);
  }
  if (!observed.readings.empty()) return;
  Reading whole = reading_of(sample.activity.value_or(Activity{}), sample.sm_clock_mhz);
  whole.from = observed.begin;
  whole.to = observed.end;
  if (!whole.busy) {
    double caught = 0;
    for (double share : observed.shares) caught += share;
    whole.busy = caught > 0 ? std::min(1.0, caught) : sample.gpu_utilization.value_or(Ratio{1}).value;
  }
  observed.readings.push_back(whole);
}

}  // namespace gpuledger::attribute
