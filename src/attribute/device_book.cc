#include "attribute/device_book.h"

#include <algorithm>
#include <cmath>

namespace gpuledger::attribute {
namespace {

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

  now_ = batch.at.steady;
  const Step present = gather(sample, batch, identities);
  const auto step = meter_.read(sample, batch.at, highest_power());
  if (step) {
    if (wait_for_utilization(sample, present, step->time)) return;
    measured_ += step->energy;
    const bool ordinary = book(*step, present, sample, rules);
    if (ordinary) learn_floors(*step, present, sample);
    last_crowd_ = present.who.size();
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
  const auto it = accounts_.try_emplace(key, Account(accounts_opened_ + 1, now)).first;
  accounts_opened_ = std::max(accounts_opened_, it->second.id);
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

void DeviceBook::evaluate_idleness() {
  for (auto& [key, account] : accounts_) {
    if (!account.exited) account.idle.evaluate();
  }
}

void DeviceBook::forget_exited(Nanoseconds now, const BookingRules& rules) {
  std::erase_if(accounts_, [&](const auto& entry) {
    const bool old = entry.second.exited && now - *entry.second.exited > rules.retention;
    if (old) mixture_.forget(entry.second.id);
    return old;
  });
}

double DeviceBook::standard_error(const Account& account, const BookingRules& rules) const {
  double variance = account.lottery_variance + account.intensity_error * account.intensity_error;
  if (rules.attribution == Attribution::kAdaptive && account.booked.shared > Energy()) {
    const double doubt = mixture_.doubt(account.id);
    // What is owed, or was charged too much, is an error of the books too until it is put right.
    const double debt = mixture_.fair(account.id) - (account.booked.total() - account.static_energy).joules();
    variance += doubt * doubt + debt * debt;
  }
  return std::sqrt(variance);
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
    process.static_energy = account.static_energy;
    process.standard_error_joules = standard_error(account, rules);
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
