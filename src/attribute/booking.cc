#include <algorithm>
#include <cmath>

#include "attribute/device_book.h"
#include "attribute/split.h"

// The part of a GPU's books that decides who pays for a step.
namespace gpuledger::attribute {
namespace {

// The driver remembers utilisation for 10 s at least: a longer step would be split by what only its end shows.
constexpr Nanoseconds kUtilizationMemory = std::chrono::seconds(10);
// One lottery ticket per 200 ms on the driver measured.
constexpr double kTicketsPerSecond = 5;
// A counter that is refreshed every 100 ms may show up to that much more time than has passed.
constexpr Nanoseconds kCounterRefresh = std::chrono::milliseconds(200);
// Short peaks go over the enforced limit; nothing draws a quarter more for a whole step.
constexpr double kPeakOverLimit = 1.25;

}  // namespace

std::optional<Power> DeviceBook::highest_power() const {
  if (!description_->power_limit) return std::nullopt;
  return Power::watts(description_->power_limit->watts() * kPeakOverLimit);
}

// A failed utilisation call is answered by the next one, which covers this time too: better one longer step
// than joules charged blindly. Not for ever: the driver forgets after kUtilizationMemory.
bool DeviceBook::wait_for_utilization(const DeviceSample& sample, const Step& step, Nanoseconds pending) const {
  return sample.utilization == UtilizationState::kFailed && step.who.size() > 1 && pending < kUtilizationMemory;
}

bool DeviceBook::book(const EnergyMeter::Step& step, const Step& present, const DeviceSample& sample,
                      const BookingRules& rules) {
  const auto most = highest_power();
  if (most && step.energy > energy_of(*most, step.time + kCounterRefresh)) {
    book_to_reason(step.energy, Reason::kAnomaly);
    return false;
  }
  // A GPU or driver that was away brings back no memory of who worked.
  const Nanoseconds memory = was_down_ ? Nanoseconds(0) : kUtilizationMemory;
  if (step.time > std::max(memory, 2 * rules.sample_interval)) {
    book_to_reason(step.energy, Reason::kExporterDown);
    return false;
  }
  if (present.who.empty()) {
    const bool somebody = sample.gpu_utilization && sample.gpu_utilization->value > 0 && was_empty_;
    book_to_reason(step.energy, somebody ? Reason::kUnseen : Reason::kIdle);
  } else {
    book_to_tenants(step, present, sample, rules);
  }
  return !step.restarted;
}

void DeviceBook::book_to_tenants(const EnergyMeter::Step& step, const Step& present, const DeviceSample& sample,
                                 const BookingRules& rules) {
  const auto shares = gpu_time_shares(sample.utilization, present.tenants);
  add_gpu_time(present, shares, step.time);
  const bool alone = present.who.size() == 1;
  const bool may_estimate = rules.attribution != Attribution::kMeasuredOnly && shares;
  const bool separate = rules.static_power == StaticPower::kSeparate;

  Energy rest = step.energy;
  if (separate || (rules.static_power == StaticPower::kEqual && !alone && may_estimate)) {
    const bool nobody_worked = shares && std::all_of(shares->begin(), shares->end(), [](double s) { return s <= 0; });
    const auto floor = static_power(rules);
    const Energy constant = nobody_worked ? rest : std::min(rest, floor ? energy_of(*floor, step.time) : Energy());
    rest -= constant;
    separate ? book_to_reason(constant, Reason::kStatic) : book_equally(constant, present);
  }
  if (alone) {
    book_to(present.who.front()->second, rest, true);
  } else if (may_estimate) {
    book_shares(rest, *shares, present, step.time);
  } else {
    book_to_reason(rest, Reason::kUnseen);
  }
}

void DeviceBook::book_to_reason(Energy energy, Reason reason) {
  unattributed_[static_cast<size_t>(reason)] += energy;
}

// The seam for what a second of each process costs: today every second weighs the same.
void DeviceBook::book_shares(Energy energy, const std::vector<double>& shares, const Step& present, Nanoseconds time) {
  double sum = 0;
  for (double share : shares) sum += share;
  if (sum <= 0) return book_equally(energy, present);

  constexpr double kScale = 1e9;  // ratios as integers; one part in 10^9 is far below a ticket
  std::vector<uint64_t> weights;
  for (double share : shares) weights.push_back(static_cast<uint64_t>(std::llround(share / sum * kScale)));
  const std::vector<Energy> parts = split_exactly(energy, weights);

  const double joules = energy.joules();
  const double seconds = std::chrono::duration<double>(time).count();
  const double tickets = std::max(1.0, seconds * kTicketsPerSecond);
  for (size_t i = 0; i < parts.size(); ++i) {
    Account& account = present.who[i]->second;
    book_to(account, parts[i], false);
    const double share = shares[i] / sum;
    const double spread = share * (1 - share);
    // With so few tickets, none is no proof of no work: the lottery's spread is that of one ticket more for each.
    const double lucky = (share * tickets + 1) / (tickets + static_cast<double>(shares.size()));
    account.lottery_variance += joules * joules * lucky * (1 - lucky) / tickets;
    // Nothing is known of what a second of each costs (a spin loop's is almost free), so at equal time the true
    // share may be anything between 0 and 1: a standard deviation of 1/sqrt(12), which this reaches at 1/2.
    account.intensity_error += joules * spread * 2 / std::sqrt(3.0);
  }
}

void DeviceBook::book_equally(Energy energy, const Step& present) {
  const std::vector<uint64_t> equal(present.who.size(), 1);
  const std::vector<Energy> parts = split_exactly(energy, equal);
  for (size_t i = 0; i < parts.size(); ++i) book_to(present.who[i]->second, parts[i], parts.size() == 1);
}

void DeviceBook::book_to(Account& account, Energy energy, bool alone) {
  Booked& owner = owners_[account.identity.owner];
  (alone ? account.booked.alone : account.booked.shared) += energy;
  (alone ? owner.alone : owner.shared) += energy;
}

void DeviceBook::add_gpu_time(const Step& present, const std::optional<std::vector<double>>& shares, Nanoseconds time) {
  for (size_t i = 0; i < present.who.size(); ++i) {
    const Tenant& tenant = present.tenants[i];
    if (!shares || tenant.mig_slices > 0) continue;  // slices say who could have worked, not who did
    const double busy = std::min(1.0, (*shares)[i]);
    const Nanoseconds used(std::llround(busy * static_cast<double>(time.count())));
    Account& account = present.who[i]->second;
    account.booked.add_gpu_time(used);
    owners_[account.identity.owner].add_gpu_time(used);
  }
}

void DeviceBook::learn_floors(const EnergyMeter::Step& step, const Step& present, const DeviceSample& sample,
                              Nanoseconds now) {
  const bool empty = present.who.empty();
  const bool quiet = sample.gpu_utilization && sample.gpu_utilization->value <= 0 && !present.anyone_working;
  if (empty && was_empty_ && quiet) idle_floor_.observe(step.energy, step.time, now);
  if (!empty && quiet) resident_floor_.observe(step.energy, step.time, now);
}

std::optional<Power> DeviceBook::static_power(const BookingRules& rules) const {
  if (rules.idle_power) return rules.idle_power;
  return resident_floor_.value() ? resident_floor_.value() : idle_floor_.value();
}

}  // namespace gpuledger::attribute
