// SPDX-License-Identifier: Apache-2.0
#include "identity/resolver.h"

#include <algorithm>
#include <thread>

#include "base/descriptors.h"
#include "identity/allocations.h"
#include "identity/cgroup_path.h"

namespace gpuledger::identity {
namespace {

// Runtimes move a process once or twice while it starts; later its cgroup stays in practice.
constexpr Nanoseconds kYoung = std::chrono::seconds(15);
// An exec changes only the name, so reading all processes again is not urgent.
constexpr Nanoseconds kReadAgain = std::chrono::minutes(1);
constexpr int kReadAgainAtOnce = 16;
// One half of the open-file limit is for watching processes: files, sockets and clients need the rest.
constexpr size_t kWatchedShare = 2;
// Limit of inferred names of pods without a process here.
constexpr size_t kMostInferred = 1000;
constexpr const char* kCgroupRoot = "/sys/fs/cgroup";

std::vector<Pid> pids_of(const SampleBatch& batch) {
  std::vector<Pid> pids;
  for (const DeviceSample& device : batch.devices) {
    for (const ProcessSample& process : device.processes) pids.push_back(process.pid);
  }
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace

Resolver::Resolver(ProcReader proc, NodeDirectory directory)
    : proc_(std::move(proc)),
      view_(proc_.read_view()),
      directory_(std::move(directory)),
      watch_(view_.own_pids ? descriptor_limit() / kWatchedShare : 0) {
  names_.own_cgroup = proc_.read_own_cgroup();
}

std::shared_ptr<const IdentityMap> Resolver::resolve(const SampleBatch& batch) {
  std::vector<Pid> pids = pids_of(batch);
  changed_ |= pids != last_pids_ || rescan_wanted_;
  last_pids_ = std::move(pids);
  rescan_wanted_ = false;
  const bool renamed = take_names();

  const std::vector<Pid> ended_list = watch_.ended();
  const std::set<Pid> ended(ended_list.begin(), ended_list.end());
  int budget = kReadAgainAtOnce;
  for (const Pid pid : last_pids_) {
    if (!view_.host_pids) break;  // here the pid is another process: no name is better than a wrong one
    const auto it = known_.find(pid);
    if (it != known_.end() && it->second.met_early) {
      it->second.met_early = false;
      if (renamed) give_name(it->second);
      changed_ = true;
    } else if (it == known_.end() || is_young(it->second, batch)) {
      meet(pid, batch.at.steady);
    } else if (has_ended(pid, it->second, ended)) {
      forget(pid);
    } else {
      if (batch.at.steady - it->second.last_read >= kReadAgain && budget-- > 0) read_name_again(it->second, batch);
      if (renamed) give_name(it->second);
    }
  }
  // Without GPUs (driver lost) a batch does not show exits.
  if (batch.processes_scanned) {
    const auto absent = [&](Pid pid) { return !std::binary_search(last_pids_.begin(), last_pids_.end(), pid); };
    std::erase_if(known_, [&](const auto& entry) {
      if (!absent(entry.first)) return false;
      watch_.remove(entry.first);
      return true;
    });
    std::erase_if(gone_, absent);
  }
  if (grants_ && (renamed || changed_ || batch.processes_scanned)) {
    auto joined = join_allocations(*grants_, names_.pods.get(), batch);
    if (joined != allocations_) {
      changed_ = true;
      allocations_ = std::move(joined);
    }
  }
  if (batch.processes_scanned) read_slurm_holders(batch);
  if (changed_) infer_pods(batch);
  if (changed_ || !last_map_) last_map_ = write_map(batch);
  changed_ = false;
  return last_map_;
}

// True: the data of some source changed.
bool Resolver::take_names() {
  bool renamed = false;
  const auto take = [&](auto& held, auto fresh) {
    if (held == fresh) return false;
    held = std::move(fresh);
    return renamed = true;
  };
  if (directory_.pods) take(names_.pods, directory_.pods->view());
  if (directory_.allocations) take(grants_, directory_.allocations->view());
  for (const auto& source : directory_.containers) {
    DaemonNames& daemon = names_.containers[std::string(source->runtime())];
    if (take(daemon.names, source->view())) daemon.user = source->user();
  }
  changed_ |= renamed;
  return renamed;
}

bool Resolver::is_young(const Known& known, const SampleBatch& batch) const {
  return batch.processes_scanned && batch.at.steady - known.first_read < kYoung;
}

void Resolver::read_name_again(Known& known, const SampleBatch& batch) {
  known.last_read = batch.at.steady;
  const auto name = proc_.read_name(known.identity.key.pid);
  // If it exited, the next cycle finds out.
  if (!name.ok() || *name == known.identity.name) return;
  known.identity.name = *name;
  changed_ = true;
}

bool Resolver::has_ended(Pid pid, Known& known, const std::set<Pid>& ended) const {
  if (known.watched) return ended.contains(pid);
  const auto stamp = proc_.read_stamp(pid);
  if (stamp && stamp == known.stamp) return false;
  // Another start time: the pid was reused, and the process that the driver listed has exited.
  const auto start = proc_.read_start_ticks(pid);
  // A failed read does not mean an exit; only a missing pid does.
  if (!start.ok()) return start.error().code == Code::kNotFound;
  if (*start != known.identity.key.start_ticks) return true;
  known.stamp = stamp;
  return false;
}

void Resolver::forget(Pid pid) {
  known_.erase(pid);
  watch_.remove(pid);
  gone_.insert(pid);
  rescan_wanted_ = true;
  changed_ = true;
}

void Resolver::meet_early(const std::vector<Pid>& pids, Nanoseconds now) {
  if (!view_.host_pids) return;
  bool unnamed = false;
  for (const Pid pid : pids) {
    if (known_.contains(pid) || gone_.contains(pid)) continue;
    meet(pid, now);
    const auto met = known_.find(pid);
    if (met == known_.end()) continue;
    met->second.met_early = true;
    unnamed |= met->second.naming != Naming::kComplete;
  }
  if (unnamed) ask_for_names();
}

void Resolver::meet(Pid pid, Nanoseconds now) {
  const auto before = known_.find(pid);
  const bool watched = before != known_.end() && before->second.watched ? true : watch_.add(pid);
  auto read = read_process(pid);
  if (!read.ok()) {
    if (before == known_.end()) {
      watch_.remove(pid);
    } else if (read.error().code == Code::kNotFound) {
      forget(pid);
    }  // else unchanged: a failed read does not mean an exit
    return;
  }
  const bool same = before != known_.end() && before->second.identity.key == read->identity.key;
  // A reused pid: the watch holds the exited one.
  read->watched = same || before == known_.end() ? watched : watch_.add(pid);
  read->last_read = now;
  read->first_read = same ? before->second.first_read : now;
  if (!read->home_is_read && same) read->home = before->second.home;
  give_name(*read);
  read_job(read->identity);
  // Most processes have not changed.
  changed_ |= !same || before->second.identity != read->identity || before->second.naming != read->naming;
  gone_.erase(pid);
  known_[pid] = std::move(*read);
}

Result<Resolver::Known> Resolver::read_process(Pid pid) {
  constexpr int kTries = 2;  // a pid reused twice in a row is not read a third time
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto before = proc_.read_start_ticks(pid);
    if (!before.ok()) return failed(before.error());
    const auto name = proc_.read_name(pid);
    if (!name.ok() && name.error().code != Code::kNotFound) return failed(name.error());
    Known known;
    const std::string uid = proc_.read_uid(pid);
    GL_TRY_STATUS(read_home(pid, uid, known));
    const auto after = proc_.read_start_ticks(pid);
    if (!after.ok()) return failed(after.error());
    if (*before != *after) continue;

    known.identity.key = {pid, *before};
    known.identity.name = name.value_or("unknown");
    known.identity.start_time_seconds = proc_.start_time_seconds(*before);
    known.identity.user_name = proc_.user_name(uid);
    known.identity.uid = uid;
    return known;
  }
  return Error{Code::kNotFound, "changes hands"};
}

Error Resolver::failed(const Error& error) {
  if (error.code != Code::kNotFound) ++errors_[code_name(error.code)];
  return error;
}

// Error: to be read again later.
Status Resolver::read_home(Pid pid, const std::string& uid, Known& known) {
  const auto cgroup = proc_.read_cgroup(pid);
  if (!cgroup.ok()) {
    if (cgroup.error().code != Code::kNotFound) ++errors_[std::string("cgroup_") + code_name(cgroup.error().code)];
    return cgroup.error().code == Code::kUnavailable ? Status(cgroup.error()) : ok_status();
  }
  known.home_is_read = true;
  CgroupHome& home = known.home;
  home = parse_cgroup(*cgroup);
  if (home.verdict == CgroupHome::Verdict::kAmbiguous) ++errors_["cgroup_ambiguous"];
  if (home.verdict == CgroupHome::Verdict::kInvalid) ++errors_["cgroup_invalid"];
  if (home.payer == CgroupHome::Payer::kJob && home.scheduler->number && !home.step_cgroup.empty()) {
    const auto number = (proc_.*home.scheduler->number)(kCgroupRoot, home.step_cgroup);
    if (number) home.job = std::to_string(*number);
  }
  if (home.user.empty()) home.user = uid;
  return ok_status();
}

void Resolver::give_name(Known& known) const {
  OwnerFound found = owner_of(known.home, names_);
  known.identity.owner = std::move(found.owner);
  known.identity.container_id = std::move(found.container_id);
  known.naming = found.naming;
}

// Users of a directory service are not in the passwd; the prolog names them.
void Resolver::read_job(ProcessIdentity& identity) {
  if (!SlurmJobs::may_have(identity.owner)) return;
  auto job = directory_.slurm_jobs.read(identity.owner.job);
  if (!job.ok()) {
    if (job.error().code != Code::kNotFound) ++errors_[std::string("slurm_job_") + code_name(job.error().code)];
    return;
  }
  identity.job = std::move(job->facts);
  if (identity.user_name.empty() && !identity.uid.empty() && identity.uid == job->uid) identity.user_name = job->user;
}

// Jobs that hold a GPU, also without a process. A lost driver does not take it from them.
void Resolver::read_slurm_holders(const SampleBatch& batch) {
  const auto jobs = directory_.slurm_jobs.read_all();
  std::map<std::string, SlurmHolder, std::less<>> holders;
  for (const auto& [name, job] : jobs) holders[name] = {job.facts, job.uid, job.user};
  auto joined = join_slurm_jobs(jobs, batch);
  if (joined == slurm_allocations_ && holders == slurm_holders_) return;
  changed_ = true;
  slurm_allocations_ = std::move(joined);
  slurm_holders_ = std::move(holders);
}

// If no source gives pod names, the grant of a whole GPU does: if only one container has it, and all pod processes on
// it are of one pod, it is that pod. The name is kept, so that labels do not flap.
void Resolver::infer_pods(const SampleBatch& batch) {
  if (names_.pods || !grants_) return;
  bool told = false;
  for (const DeviceSample& device : batch.devices) {
    const Allocation* holder = device.description ? sole_holder(allocations_, device.description->uuid) : nullptr;
    if (!holder) continue;
    std::set<std::string> uids;
    for (const ProcessSample& process : device.processes) {
      const auto known = known_.find(process.pid);
      if (known == known_.end()) continue;
      const Owner& owner = known->second.identity.owner;
      if (owner.kind == OwnerKind::kPod) uids.insert(owner.pod_uid);
    }
    if (uids.size() != 1) continue;
    told |=
        names_.inferred.try_emplace(*uids.begin(), PodTold{holder->name_space, holder->pod, holder->container}).second;
  }
  if (!told) return;
  if (names_.inferred.size() > kMostInferred) {
    std::set<std::string_view> here;
    for (const auto& [pid, known] : known_) here.insert(known.home.pod_uid);
    std::erase_if(names_.inferred, [&](const auto& entry) { return !here.contains(entry.first); });
  }
  for (auto& [pid, known] : known_) give_name(known);
}

}  // namespace gpuledger::identity
