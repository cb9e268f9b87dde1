// SPDX-License-Identifier: Apache-2.0
#include "node_root.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <system_error>

#include "kubelet_files.h"

namespace gpuledger::sim {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kUptimeSeconds = 86400;  // the node was up for a day when the simulation began
constexpr int64_t kTicksPerSecond = 100;
constexpr size_t kCommLength = 15;
// The node's passwd: that of its first process.
constexpr const char* kPasswdFile = "proc/1/root/etc/passwd";
constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "ubuntu:x:1000:1000::/home/ubuntu:/bin/bash\n"
    "ana:x:2001:2001::/home/ana:/bin/bash\n"
    "ben:x:2002:2002::/home/ben:/bin/bash\n";

std::string status_text(const Life& life) {
  const std::string pid = std::to_string(life.pid);
  const std::string uid = std::to_string(life.process->uid);
  return "Name:\t" + life.process->name.substr(0, kCommLength) + "\nUmask:\t0022\nState:\tR (running)\nTgid:\t" + pid +
         "\nPid:\t" + pid + "\nPPid:\t1\nUid:\t" + uid + "\t" + uid + "\t" + uid + "\t" + uid +
         "\nGid:\t1000\t1000\t1000\t1000\nNSpid:\t" + pid + "\nThreads:\t8\n";
}

std::string stat_text(const Life& life, int64_t start_ticks) {
  return std::to_string(life.pid) + " (" + life.process->name.substr(0, kCommLength) +
         ") R 1 1 1 0 -1 4194560 5000 0 10 0 1200 340 0 0 20 0 8 0 " + std::to_string(start_ticks) +
         " 4294967296 262144 18446744073709551615 1 1 0 0 0 0 0 4096 16384 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
}

std::string cmdline_text(const std::string& command) {
  std::string words = command;
  std::replace(words.begin(), words.end(), ' ', '\0');
  words.push_back('\0');
  return words;
}

}  // namespace

std::string cgroup_line(const OwnerSpec& owner) {
  std::string path;
  switch (owner.kind) {
    case OwnerKind::kPod: {
      std::string uid = owner.pod_uid;
      std::replace(uid.begin(), uid.end(), '-', '_');
      path = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid + ".slice/cri-containerd-" +
             owner.container_id + ".scope";
      break;
    }
    case OwnerKind::kDocker: path = "/system.slice/docker-" + owner.container_id + ".scope"; break;
    case OwnerKind::kSlurm:
      path = "/system.slice/slurmstepd.scope/job_" + owner.job + "/step_" + owner.step + "/user/task_0";
      break;
    case OwnerKind::kCgroup: path = owner.cgroup; break;
    case OwnerKind::kSystemd: path = "/system.slice/" + owner.unit; break;
    case OwnerKind::kNone: path = "/user.slice/user-1000.slice/session-1.scope"; break;
  }
  return "0::" + path + "\n";
}

NodeRoot::NodeRoot(std::string folder, const Scenario& scenario, int64_t epoch_micros)
    : folder_(std::move(folder)),
      scenario_(scenario),
      boot_seconds_(epoch_micros / 1000000 - kUptimeSeconds),
      epoch_micros_(epoch_micros) {}

NodeRoot::~NodeRoot() {
  std::error_code ignored;
  for (const auto& [pid, start] : living_) remove_process(pid);
  fs::remove(folder_ / "proc" / "stat", ignored);
  for (const auto& [name, text] : written_) fs::remove(folder_ / name, ignored);
  for (const GpuSpec& gpu : scenario_.gpus) {
    fs::remove(driver_folder(gpu) / "information", ignored);
    fs::remove(driver_folder(gpu), ignored);
  }
  for (const char* name : {"proc/driver/nvidia/gpus", "proc/driver/nvidia", "proc/driver"}) {
    fs::remove(folder_ / name, ignored);
  }
  for (const char* name : {kPasswdFile, "proc/1/root/etc", "proc/1/root", "proc/1"})
    fs::remove(folder_ / name, ignored);
  // Only if empty: other files there are not ours.
  fs::remove(folder_ / "proc", ignored);
  fs::remove(folder_ / "kubelet", ignored);
  fs::remove(folder_ / "docker", ignored);
  fs::remove(folder_ / "slurm", ignored);
}

fs::path NodeRoot::driver_folder(const GpuSpec& gpu) const {
  // Four digits of domain there, eight in NVML.
  const std::string bus = gpu.pci_bus_id.size() > 4 ? gpu.pci_bus_id.substr(4) : gpu.pci_bus_id;
  return folder_ / "proc" / "driver" / "nvidia" / "gpus" / bus;
}

void NodeRoot::keep(Millis now) {
  if (started_ && now >= written_at_ && now < next_change_) return;
  if (!started_) {
    write_file(folder_ / "proc" / "stat", "cpu  0 0 0 0 0 0 0 0 0 0\nbtime " + std::to_string(boot_seconds_) + "\n");
    write_file(folder_ / kPasswdFile, kPasswd);
    write_slurm_jobs();
    for (const GpuSpec& gpu : scenario_.gpus) {
      write_file(driver_folder(gpu) / "information",
                 "Model: \t\t " + gpu.model.name + "\nGPU UUID: \t " + gpu.uuid + "\n");
    }
  }
  started_ = true;
  written_at_ = now;
  next_change_ = kForever;
  std::vector<Life> lives;
  for (const ProcessSpec& process : scenario_.processes) {
    next_change_ = std::min(next_change_, next_life_change(process, now));
    if (!process.real) append_lives(process, now, &lives);
  }
  std::map<unsigned, Millis> wanted;
  for (const Life& life : lives) wanted.try_emplace(life.pid, life.start);
  for (auto at = living_.begin(); at != living_.end();) {
    const auto still = wanted.find(at->first);
    if (still == wanted.end() || still->second != at->second) {
      remove_process(at->first);
      at = living_.erase(at);
    } else {
      ++at;
    }
  }
  for (const Life& life : lives) {
    if (living_.try_emplace(life.pid, life.start).second) write_process(life);
  }
  for (const AllocationSpec& allocation : scenario_.allocations) {
    for (const Millis change : {allocation.start, allocation.end}) {
      if (change > now) next_change_ = std::min(next_change_, change);
    }
  }
  write_daemons(lives, now);
}

void NodeRoot::write_process(const Life& life) {
  const int64_t since_boot_micros = epoch_micros_ + life.start * 1000 - boot_seconds_ * 1000000;
  const int64_t start_ticks = since_boot_micros * kTicksPerSecond / 1000000;
  const fs::path proc = folder_ / "proc" / std::to_string(life.pid);
  write_file(proc / "comm", life.process->name.substr(0, kCommLength) + "\n");
  write_file(proc / "cmdline", cmdline_text(life.process->command));
  write_file(proc / "cgroup", cgroup_line(life.process->owner));
  write_file(proc / "status", status_text(life));
  write_file(proc / "stat", stat_text(life, start_ticks));
}

void NodeRoot::remove_process(unsigned pid) {
  std::error_code ignored;
  const fs::path proc = folder_ / "proc" / std::to_string(pid);
  for (const char* name : {"stat", "status", "comm", "cmdline", "cgroup"}) fs::remove(proc / name, ignored);
  fs::remove(proc, ignored);
}

// As deploy/slurm/prolog.sh does. A job with a real process has a real prolog.
void NodeRoot::write_slurm_jobs() {
  std::error_code ignored;
  std::map<std::string, std::set<unsigned>> gpus_of;
  for (const ProcessSpec& process : scenario_.processes) {
    gpus_of[process.owner.job].insert(process.gpus.begin(), process.gpus.end());
  }
  for (const ProcessSpec& process : scenario_.processes) {
    const OwnerSpec& owner = process.owner;
    if (process.real || owner.kind != OwnerKind::kSlurm || owner.account.empty()) continue;
    std::string gpus;
    for (const unsigned gpu : gpus_of[owner.job]) gpus += (gpus.empty() ? "" : ",") + std::to_string(gpu);
    const std::string name = "slurm/" + owner.job;
    std::string& text = written_[name];
    text = "account=" + owner.account + "\npartition=" + owner.partition + "\nuid=" + std::to_string(process.uid) +
           "\ngpus=" + gpus + "\nstart=" + std::to_string(epoch_micros_ / 1000000 + process.start / 1000) + "\n";
    write_file(folder_ / name, text);
    // Whatever the umask: others must not be able to write it.
    constexpr auto kGroupAndOthers = fs::perms::group_write | fs::perms::others_write;
    for (const fs::path& path : {folder_ / name, folder_ / "slurm"}) {
      fs::permissions(path, kGroupAndOthers, fs::perm_options::remove, ignored);
    }
  }
}

void NodeRoot::write_daemons(const std::vector<Life>& lives, Millis now) {
  const std::pair<const char*, std::string> files[] = {
      {"kubelet/pods.json", pod_list_text(scenario_, lives, now)},
      {"kubelet/pod-resources.json", pod_resources_text(scenario_, lives, now)},
      {"docker/containers.json", docker_list_text(lives)},
  };
  for (const auto& [name, text] : files) {
    std::string& last = written_[name];
    if (text == last) continue;
    last = text;
    write_file(folder_ / name, text);
  }
}

// Written to a temporary file and renamed, so that a reader sees the old file or the whole new one.
void NodeRoot::write_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  const fs::path beside = path.parent_path() / ("." + path.filename().string() + ".new");
  {
    std::ofstream file(beside, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file) return;
  }
  fs::rename(beside, path, ignored);
}

}  // namespace gpuledger::sim
