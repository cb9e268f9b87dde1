// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "attribute/books/device_book.h"
#include "attribute/books/kin.h"

// The part of a GPU's books that tracks its processes.
namespace gpuledger::attribute {
namespace {

constexpr Nanoseconds kLateNews = std::chrono::seconds(2);

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

// The driver shows only the work of the MPS server, and not for which client it was done.
bool mps_hides(const DeviceSample& sample) {
  bool clients = false;
  bool server_works = false;
  for (const ProcessSample& process : sample.processes) {
    clients |= process.mps_client;
    server_works |= !process.mps_client && process.use.any();
  }
  return clients && server_works;
}

// Most processes never use the encoder or decoder. They have no series for it.
void note_engine(bool known, Ratio use, bool& ever, std::optional<Ratio>& now) {
  ever |= known && use.value > 0;
  now = known && ever ? std::optional(use) : std::nullopt;
}

}  // namespace

DeviceBook::Present DeviceBook::gather(const DeviceSample& sample, const IdentityMap& identities) {
  Present step;
  step.step = ++steps_;
  step.mps_hides = mps_hides(sample);
  step.who.reserve(sample.processes.size());
  step.tenants.reserve(sample.processes.size());
  step.stays.reserve(sample.processes.size());
  for (const ProcessSample& process : sample.processes) {
    const auto known = identities.by_pid.find(process.pid);
    // Without a start time it exited before /proc was read. After a restart of this program its earlier account may
    // have the start time.
    const bool unread = known != identities.by_pid.end() && known->second.key.start_ticks == 0;
    const bool alive = known != identities.by_pid.end() && !(unread && find_recent(process.pid) != accounts_.end());
    // A pid that the driver lists but /proc does not counts only if it worked in this step.
    if (!alive && !process.use.any() && !process.came && !process.left) continue;
    const auto account = open_account(process, alive ? &known->second : nullptr);
    if (std::exchange(account->second.seen_in, step.step) == step.step) continue;
    if (!alive || unread) step.gone.insert(account->second.id);
    add_tenant(account, process, sample, step);
    // /proc had it once and has it no more: it ended in this step, and the next one is not its own.
    if (!alive && account->second.identity.key.start_ticks != 0) account->second.momentary = true;
  }
  add_those_who_left(step);

  divide_instances(step);
  // Names can be unknown (an exited process, a recording): then each non-client is a server.
  const auto server = [](const Tenant& tenant) { return tenant.mps_server; };
  if (std::none_of(step.tenants.begin(), step.tenants.end(), server)) {
    for (Tenant& tenant : step.tenants) tenant.mps_server = !tenant.mps_client;
  }
  return step;
}

// The processes of an instance share it by the time that each was there.
void DeviceBook::divide_instances(Present& step) const {
  const Nanoseconds begin = meter_.at() ? meter_.at()->steady : now_;
  const auto stay = [&](size_t i) {
    const auto& [from, to] = step.stays[i];
    const Nanoseconds time = std::min(to, now_) - std::max(from, begin);
    return std::chrono::duration<double>(std::max(time, Nanoseconds(1))).count();
  };
  std::map<MigId, double> sums;
  for (size_t i = 0; i < step.who.size(); ++i) {
    if (const auto& mig = step.who[i]->second.mig) sums[mig->id] += stay(i);
  }
  for (size_t i = 0; i < step.who.size(); ++i) {
    if (const auto& mig = step.who[i]->second.mig) step.tenants[i].mig_part = stay(i) / sums[mig->id];
  }
}

void DeviceBook::add_tenant(Accounts::iterator account, const ProcessSample& process, const DeviceSample& sample,
                            Present& step) {
  Account& book = account->second;
  const bool hidden = step.mps_hides && process.mps_client && !process.use.any();
  const bool known_use = sample.utilization == UtilizationState::kKnown && !hidden;
  book.memory = process.memory;
  if (process.memory) book.memory_peak = std::max(book.memory_peak.value_or(Bytes{}), *process.memory);
  if (process.listed) {
    book.compute = process.compute || process.mps_client;
    book.graphics = process.graphics;
  }
  const bool only_draws = book.graphics && !book.compute;
  book.sm = known_use ? std::optional(process.use.sm) : std::nullopt;
  book.memory_utilization = known_use ? std::optional(process.use.memory) : std::nullopt;
  note_engine(known_use, process.use.encoder, book.has_encoded, book.encoder);
  note_engine(known_use, process.use.decoder, book.has_decoded, book.decoder);
  if (hidden || only_draws) {
    book.idle.observe_nothing();
  } else {
    book.idle.observe(sample, process.use, now_);
  }
  // It left, or only a sample names it and /proc does not: it will not come back.
  book.momentary = !process.listed && (process.left || book.identity.key.start_ticks == 0);

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
  // Glances tell when it came and left; else it counts as present for the whole step.
  step.stays.emplace_back(book.was_there ? Nanoseconds(0) : process.came.value_or(Nanoseconds(0)),
                          process.listed ? Nanoseconds::max() : process.left.value_or(Nanoseconds::max()));
  step.anyone_working |= process.use.any();
}

// They ran for a part of the step. A process with only a new owner did not leave.
void DeviceBook::add_those_who_left(Present& step) {
  for (auto it = accounts_.begin(); it != accounts_.end(); ++it) {
    const Account& account = it->second;
    if (account.exited || step.has(account) || seen_under_any_owner(it->first, step)) continue;
    step.who.push_back(it);
    Tenant tenant;
    if (account.mig) tenant.mig_slices = account.mig->compute_slices;
    step.tenants.push_back(tenant);
    step.stays.emplace_back(Nanoseconds(0), Nanoseconds::max());
  }
}

// A process's accounts are adjacent.
DeviceBook::Accounts::iterator DeviceBook::first_account(const ProcKey& process, const std::optional<MigId>& mig) {
  static const Owner before_all_others = [] {
    Owner first;
    first.kind = OwnerKind::kPod;
    return first;
  }();
  return accounts_.lower_bound(std::tie(process, mig, before_all_others));
}

bool DeviceBook::seen_under_any_owner(const AccountKey& key, const Present& step) {
  const auto& [process, mig, owner] = key;
  for (auto it = first_account(process, mig); it != accounts_.end(); ++it) {
    if (std::get<0>(it->first) != process || std::get<1>(it->first) != mig) return false;
    if (step.has(it->second)) return true;
  }
  return false;
}

DeviceBook::Accounts::iterator DeviceBook::find_living(Pid pid) {
  for (auto it = first_account({pid, 0}, std::nullopt); it != accounts_.end(); ++it) {
    if (std::get<0>(it->first).pid != pid) break;
    if (!it->second.exited) return it;
  }
  return accounts_.end();
}

// Utilization samples are up to a period late: a short job may have exited by then.
DeviceBook::Accounts::iterator DeviceBook::find_recent(Pid pid) {
  auto found = find_living(pid);
  if (found != accounts_.end()) return found;
  for (auto it = first_account({pid, 0}, std::nullopt); it != accounts_.end(); ++it) {
    if (std::get<0>(it->first).pid != pid) break;
    const bool late = now_ - *it->second.exited <= kLateNews;
    if (late && (found == accounts_.end() || *it->second.exited > *found->second.exited)) found = it;
  }
  return found;
}

DeviceBook::Accounts::iterator DeviceBook::open_account(const ProcessSample& process, const ProcessIdentity* identity) {
  ProcessIdentity unknown;
  if (!identity) {
    // Exited since the last sample: the work is of its recent account. Without one, only the pid is known.
    if (const auto it = find_recent(process.pid); it != accounts_.end()) return it;
    unknown.key.pid = process.pid;
    unknown.name = "unknown";
    unknown.owner.kind = OwnerKind::kUnknown;
  }
  const ProcessIdentity& who = identity ? *identity : unknown;
  // Most processes have one account: comparing owners for equality is faster than for order.
  const auto of_process = [&](Accounts::iterator account) {
    return account != accounts_.end() && std::get<0>(account->first) == who.key &&
           std::get<1>(account->first) == process.mig;
  };
  auto it = first_account(who.key, process.mig);
  while (of_process(it) && !(std::get<2>(it->first) == who.owner)) ++it;
  if (!of_process(it)) {
    it = accounts_.try_emplace(AccountKey{who.key, process.mig, who.owner}, ++accounts_opened_, now_).first;
    it->second.identity = who;
    it->second.kin = kin_of(who);
  } else {
    // These can change: exec() makes a process another program.
    if (it->second.identity.name != who.name) {
      it->second.identity.name = who.name;
      it->second.kin = kin_of(it->second.identity);
    }
    it->second.identity.start_time_seconds = who.start_time_seconds;
    it->second.identity.container_id = who.container_id;
    it->second.identity.uid = who.uid;
    it->second.identity.user_name = who.user_name;
    it->second.identity.job = who.job;
  }
  if (const MigInstance* instance = find_instance(*description_, process.mig)) it->second.mig = *instance;
  if (identity) it->second.exited.reset();
  return it;
}

void DeviceBook::retire_missing(const Present& step, bool step_ended) {
  exited_ = 0;
  for (auto& [key, account] : accounts_) {
    const bool here = step.has(account) && !account.momentary;
    if (step_ended) account.was_there = here;
    if (!account.exited && account.owner) account.owner->last_seen = now_;
    if (!account.exited && here) continue;
    ++exited_;
    if (account.exited) continue;
    account.exited = now_;
    account.forget_gauges();
  }
  note_peaks();
}

void DeviceBook::Account::forget_gauges() {
  sm.reset();
  memory_utilization.reset();
  encoder.reset();
  decoder.reset();
  memory.reset();
}

void DeviceBook::note_peaks() {
  std::unordered_map<OwnerBook*, uint64_t> held;
  for (const auto& [key, account] : accounts_) {
    if (account.exited || account.owner == nullptr) continue;
    note_user(account.identity, *account.owner);
    note_job(account.identity.job, *account.owner);
    if (account.memory) held[account.owner] += account.memory->count;
  }
  for (const auto& [owner, bytes] : held) {
    owner->memory_peak = std::max(owner->memory_peak.value_or(Bytes{}), Bytes{bytes});
  }
}

void DeviceBook::note_user(const ProcessIdentity& identity, OwnerBook& owner) {
  if (owner.users_differ || identity.uid.empty()) return;
  owner.users_differ = !owner.uid.empty() && owner.uid != identity.uid;
  owner.uid = owner.users_differ ? Name() : identity.uid;
  if (owner.users_differ) {
    owner.user_name = Name();
  } else if (!identity.user_name.empty()) {
    owner.user_name = identity.user_name;
  }
}

// The file of an ended job is removed; what it said stays.
void DeviceBook::note_job(const JobFacts& job, OwnerBook& owner) {
  if (job.empty()) return;
  const bool again = owner.job.restarted || (owner.job.started && owner.job.started != job.started);
  owner.job = job;
  owner.job.restarted = again;
}

}  // namespace gpuledger::attribute
