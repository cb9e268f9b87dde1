#include <algorithm>

#include "attribute/device_book.h"

// The part of a GPU's books that keeps track of who is there.
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

DeviceBook::Step DeviceBook::gather(const DeviceSample& sample, const IdentityMap& identities) {
  Step step;
  for (const ProcessSample& process : sample.processes) {
    const auto known = identities.by_pid.find(process.pid);
    // Without a start time it was gone before anybody could ask. After a restart its account may know it better.
    const bool stranger = known != identities.by_pid.end() && known->second.key.start_ticks == 0;
    const bool alive = known != identities.by_pid.end() && !(stranger && find_living(process.pid) != accounts_.end());
    // A pid the driver still lists though /proc has it no more counts only for what it did in this step.
    if (!alive && !process.use.any()) continue;
    const auto account = open_account(process, alive ? &known->second : nullptr);
    if (!step.seen.insert(account->first).second) continue;
    if (!alive || stranger) step.gone.insert(account->first);
    add_tenant(account, process, sample, step);
  }
  add_those_who_left(step);

  std::map<MigId, uint32_t> crowd;
  for (const auto& who : step.who) {
    if (who->second.mig) ++crowd[who->second.mig->id];
  }
  for (size_t i = 0; i < step.who.size(); ++i) {
    const auto& mig = step.who[i]->second.mig;
    if (mig) step.tenants[i].mig_tenants = crowd[mig->id];
  }
  // Names can be unknown (a pid that is gone, a recording): then the server is whoever is no client.
  const auto server = [](const Tenant& tenant) { return tenant.mps_server; };
  if (std::none_of(step.tenants.begin(), step.tenants.end(), server)) {
    for (Tenant& tenant : step.tenants) tenant.mps_server = !tenant.mps_client;
  }
  return step;
}

void DeviceBook::add_tenant(Accounts::iterator account, const ProcessSample& process, const DeviceSample& sample,
                            Step& step) {
  Account& book = account->second;
  const bool known_use = sample.utilization == UtilizationState::kKnown;
  book.memory = process.memory;
  book.sm = known_use ? std::optional(process.use.sm) : std::nullopt;
  book.memory_utilization = known_use ? std::optional(process.use.memory) : std::nullopt;
  book.idle.observe(sample, process.use, now_);
  // Named by a ticket alone and unknown to /proc: it came and went between two looks.
  book.momentary = !process.listed && book.identity.key.start_ticks == 0;

  Tenant tenant;
  tenant.use = process.use;
  tenant.mps_client = process.mps_client;
  tenant.mps_server = !process.mps_client && named_mps_server(book.identity);
  if (book.mig) {
    tenant.mig_slices = book.mig->compute_slices;
    const auto active = sample.instance_activity.find(book.mig->id.gpu_instance);
    if (active != sample.instance_activity.end()) tenant.mig_activity = active->second.parts[Activity::kSm];
  }
  step.who.push_back(account);
  step.tenants.push_back(tenant);
  step.anyone_working |= process.use.any();
}

// They were there for a part of the step. Who only got a new owner did not leave.
void DeviceBook::add_those_who_left(Step& step) {
  std::set<std::pair<ProcKey, std::optional<MigId>>> here;
  for (const auto& [key, mig, owner] : step.seen) here.insert({key, mig});
  for (auto it = accounts_.begin(); it != accounts_.end(); ++it) {
    const auto& [key, mig, owner] = it->first;
    if (it->second.exited || here.contains({key, mig})) continue;
    step.who.push_back(it);
    Tenant tenant;
    if (it->second.mig) tenant.mig_slices = it->second.mig->compute_slices;
    step.tenants.push_back(tenant);
  }
}

DeviceBook::Accounts::iterator DeviceBook::find_living(Pid pid) {
  return std::find_if(accounts_.begin(), accounts_.end(),
                      [&](const auto& entry) { return std::get<0>(entry.first).pid == pid && !entry.second.exited; });
}

DeviceBook::Accounts::iterator DeviceBook::open_account(const ProcessSample& process, const ProcessIdentity* identity) {
  ProcessIdentity who;
  if (identity) {
    who = *identity;
  } else {
    // Gone since the last look: whoever had this pid then did the work. If nobody did, only the pid is known.
    if (const auto it = find_living(process.pid); it != accounts_.end()) return it;
    who.key.pid = process.pid;
    who.name = "unknown";
  }
  const AccountKey key{who.key, process.mig, who.owner};
  const auto it = accounts_.try_emplace(key, Account(accounts_opened_ + 1, now_)).first;
  accounts_opened_ = std::max(accounts_opened_, it->second.id);
  if (const MigInstance* instance = find_instance(*description_, process.mig)) it->second.mig = *instance;
  it->second.identity = std::move(who);
  if (identity) it->second.exited.reset();
  return it;
}

void DeviceBook::retire_missing(const Step& step) {
  for (auto& [key, account] : accounts_) {
    if (account.exited || (step.seen.contains(key) && !account.momentary)) continue;
    account.exited = now_;
    account.sm.reset();
    account.memory_utilization.reset();
    account.memory.reset();
  }
}

}  // namespace gpuledger::attribute
