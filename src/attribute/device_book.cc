#include "attribute/device_book.h"

#include <algorithm>
#include <cmath>

#include "attribute/split.h"

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

std::optional<Power> highest_power(const DeviceDescription& description) {
  if (!description.power_limit) return std::nullopt;
  return Power::watts(description.power_limit->watts() * kPeakOverLimit);
}

// comm holds 15 characters of nvidia-cuda-mps-server.
bool named_mps_server(const ProcessIdentity& identity) {
  return identity.name.starts_with("nvidia-cuda-mps");
}

const MigInstance* find_instance(const DeviceDescription& description, const std::optional<MigId>& id) {
  if (!id) return nullptr;
  for (const MigInstance& instance : description.mig) {
    if (instance.id == *id) return &instance;
  }
  return nullptr;
}

}  // namespace

DeviceBook::DeviceBook(std::shared_ptr<const DeviceDescription> description) : description_(std::move(description)) {}

void DeviceBook::advance(const DeviceSample& sample, const SampleBatch& batch, const IdentityMap& identities,
                         const BookingRules& rules) {
  description_ = sample.description;
  for (uint64_t xid : sample.xids) ++xids_[xid];
  if (!sample.up) {
    mark_down();
    return;
  }
  up_ = true;

  const Nanoseconds now = batch.at.steady;
  const Step present = gather(sample, batch, identities);
  const auto step = meter_.read(sample, batch.at, highest_power(*description_));
  if (step) {
    if (wait_for_utilization(sample, present, step->time)) return;
    measured_ += step->energy;
    const bool ordinary = book(*step, present, sample, rules);
    if (ordinary) learn_floors(*step, present, sample, now);
    was_empty_ = present.who.empty();
    was_down_ = false;
  }
  meter_.close(sample, batch.at);
}

void DeviceBook::mark_down() {
  up_ = false;
  was_down_ = true;
  for (auto& [key, account] : accounts_) {
    account.sm.reset();
    account.memory_utilization.reset();
    account.memory.reset();
    account.idle.observe(DeviceSample{}, EngineUse{}, Nanoseconds(0));  // blind
  }
}

DeviceBook::Step DeviceBook::gather(const DeviceSample& sample, const SampleBatch& batch,
                                    const IdentityMap& identities) {
  const Nanoseconds now = batch.at.steady;
  Step step;
  std::set<AccountKey> seen;
  std::set<std::pair<ProcKey, std::optional<MigId>>> seen_processes;
  std::map<MigId, uint32_t> in_instance;
  for (const ProcessSample& process : sample.processes) {
    const auto known = identities.by_pid.find(process.pid);
    const bool alive = known != identities.by_pid.end();
    // A pid the driver still lists though /proc has it no more counts only for what it did in this step.
    if (!alive && !process.use.any()) continue;
    const auto account = open_account(process, alive ? &known->second : nullptr, now);
    if (!seen.insert(account->first).second) continue;
    seen_processes.insert({std::get<0>(account->first), process.mig});

    Account& book = account->second;
    book.memory = process.memory;
    const bool known_use = sample.utilization == UtilizationState::kKnown;
    book.sm = known_use ? std::optional(process.use.sm) : std::nullopt;
    book.memory_utilization = known_use ? std::optional(process.use.memory) : std::nullopt;
    book.idle.observe(sample, process.use, now);

    // Named by a ticket alone and unknown to /proc: it came and went between two looks.
    book.momentary = !process.listed && book.identity.key.start_ticks == 0;

    step.who.push_back(account);
    Tenant tenant;
    tenant.use = process.use;
    tenant.mps_client = process.mps_client;
    tenant.mps_server = !process.mps_client && named_mps_server(book.identity);
    tenant.mig_slices = book.mig ? book.mig->compute_slices : 0;
    step.tenants.push_back(tenant);
    step.anyone_working |= process.use.any();
    if (process.mig) ++in_instance[*process.mig];
  }
  for (size_t i = 0; i < step.who.size(); ++i) {
    const auto& mig = step.who[i]->second.mig;
    if (mig) step.tenants[i].mig_tenants = in_instance[mig->id];
  }
  // Names can be unknown (a pid that is gone, a recording): then the server is whoever is no client.
  const auto server = [](const Tenant& tenant) { return tenant.mps_server; };
  if (std::none_of(step.tenants.begin(), step.tenants.end(), server)) {
    for (Tenant& tenant : step.tenants) tenant.mps_server = !tenant.mps_client;
  }
  // Those who left since the last look were there for a part of the step. Who only got a new owner did not leave.
  for (auto it = accounts_.begin(); it != accounts_.end(); ++it) {
    const auto& [key, mig, owner] = it->first;
    if (it->second.exited || seen_processes.contains({key, mig})) continue;
    step.who.push_back(it);
    step.tenants.push_back(Tenant{});
  }
  retire_missing(seen, now);
  return step;
}

DeviceBook::Accounts::iterator DeviceBook::open_account(const ProcessSample& process, const ProcessIdentity* identity,
                                                        Nanoseconds now) {
  ProcessIdentity who;
  if (identity) {
    who = *identity;
  } else {
    // Gone since the last look: whoever had this pid then did the work. If nobody did, only the pid is known.
    for (auto it = accounts_.begin(); it != accounts_.end(); ++it) {
      if (std::get<0>(it->first).pid == process.pid && !it->second.exited) return it;
    }
    who.key.pid = process.pid;
    who.name = "unknown";
  }
  const AccountKey key{who.key, process.mig, who.owner};
  const auto it = accounts_.try_emplace(key, Account(now)).first;
  if (const MigInstance* instance = find_instance(*description_, process.mig)) it->second.mig = *instance;
  it->second.identity = std::move(who);
  if (identity) it->second.exited.reset();
  return it;
}

void DeviceBook::retire_missing(const std::set<AccountKey>& seen, Nanoseconds now) {
  for (auto& [key, account] : accounts_) {
    if (account.exited || (seen.contains(key) && !account.momentary)) continue;
    account.exited = now;
    account.sm.reset();
    account.memory_utilization.reset();
    account.memory.reset();
  }
}

// A failed utilisation call is answered by the next one, which covers this time too: better one longer step
// than joules charged blindly. Not for ever: the driver forgets after kUtilizationMemory.
bool DeviceBook::wait_for_utilization(const DeviceSample& sample, const Step& step, Nanoseconds pending) const {
  return sample.utilization == UtilizationState::kFailed && step.who.size() > 1 && pending < kUtilizationMemory;
}

bool DeviceBook::book(const EnergyMeter::Step& step, const Step& present, const DeviceSample& sample,
                      const BookingRules& rules) {
  const auto most = highest_power(*description_);
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

void DeviceBook::evaluate_idleness() {
  for (auto& [key, account] : accounts_) {
    if (!account.exited) account.idle.evaluate();
  }
}

void DeviceBook::forget_exited(Nanoseconds now, const BookingRules& rules) {
  std::erase_if(accounts_,
                [&](const auto& entry) { return entry.second.exited && now - *entry.second.exited > rules.retention; });
}

void DeviceBook::write_to(Ledger& ledger, Timestamp at, const BookingRules& rules) const {
  DeviceAccount device;
  device.description = description_;
  device.up = up_;
  device.measured = measured_;
  device.unattributed = unattributed_;
  device.idle_power = rules.idle_power ? rules.idle_power : idle_floor_.value();
  device.xids = xids_;
  ledger.devices.push_back(std::move(device));

  std::map<Owner, Bytes> idle_memory;
  for (const auto& [key, account] : accounts_) {
    ProcessAccount process;
    process.gpu = description_->uuid;
    process.gpu_index = description_->index;
    process.mig = account.mig;
    process.identity = account.identity;
    process.active = !account.exited;
    process.booked = account.booked;
    process.standard_error_joules =
        std::sqrt(account.lottery_variance + account.intensity_error * account.intensity_error);
    process.sm = account.sm;
    process.memory_utilization = account.memory_utilization;
    process.memory = account.memory;
    if (account.exited) {
      process.gone_for = at.steady - *account.exited;
    } else {
      process.idle = account.idle.state(at.steady);
    }
    if (process.idle.idle && process.memory) idle_memory[account.identity.owner].count += process.memory->count;
    ledger.processes.push_back(std::move(process));
  }
  for (const auto& [owner, booked] : owners_) {
    ledger.owners.push_back({owner, description_->uuid, description_->index, booked, idle_memory[owner]});
  }
}

}  // namespace gpuledger::attribute
