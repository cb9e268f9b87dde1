// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "app/doctor/doctor.h"
#include "identity/cgroup_path.h"

namespace gpuledger::app {
namespace {

using Level = Finding::Level;
constexpr double kClearlyWorking = 0.05;

std::string text_of(const std::vector<uint32_t>& indexes) {
  std::string text = indexes.size() == 1 ? "GPU " : "GPUs ";
  for (size_t i = 0; i < indexes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(indexes[i]);
  return text;
}

// GPUs with the same finding share one line.
template <typename Condition>
std::vector<uint32_t> gpus_where(const SampleBatch& batch, Condition condition) {
  std::vector<uint32_t> found;
  for (const DeviceSample& device : batch.devices) {
    if (condition(device)) found.push_back(device.description->index);
  }
  return found;
}

void add_if_any(Findings& findings, Level level, const char* subject, const std::vector<uint32_t>& gpus,
                const std::string& text) {
  if (!gpus.empty()) findings.push_back({level, subject, text_of(gpus) + ": " + text});
}

bool has_mig(const DeviceSample& device) {
  return device.description->mig_enabled.value_or(false);
}

Findings check_energy(const SampleBatch& first, const SampleBatch& second) {
  Findings findings;
  const auto stands_still = [&](const DeviceSample& device) {
    const auto before = std::find_if(first.devices.begin(), first.devices.end(), [&](const DeviceSample& each) {
      return each.description->uuid == device.description->uuid;
    });
    return before != first.devices.end() && before->energy_counter && device.energy_counter && device.power &&
           device.power->watts() > 0 && *before->energy_counter == *device.energy_counter;
  };
  const auto without = [](const DeviceSample& device) {
    return device.up && device.description->energy_source == EnergySource::kPowerIntegral;
  };
  add_if_any(findings, Level::kWarn, "energy", gpus_where(second, stands_still),
             "power is drawn, but the energy counter stands still: update the driver; compare nvidia-smi -q -d POWER");
  add_if_any(findings, Level::kWarn, "energy", gpus_where(second, without),
             "no energy counter (GPUs before Volta): joules are added up from power readings, which is less exact");
  if (findings.empty()) findings.push_back({Level::kOk, "energy", "every GPU counts its joules in hardware"});
  return findings;
}

Findings check_utilization(const SampleBatch& batch) {
  Findings findings;
  add_if_any(findings, Level::kWarn, "utilization",
             gpus_where(batch,
                        [](const DeviceSample& device) {
                          return device.up && !has_mig(device) && device.utilization != UtilizationState::kKnown;
                        }),
             "the driver gives no utilization per process: no process is reported idle, and shared energy is a rough "
             "estimate; drivers since 535 give it, unless profiling is restricted or vGPU is used");
  if (findings.empty())
    findings.push_back({Level::kOk, "utilization", "the driver gives the utilization of each process"});
  return findings;
}

Findings check_accounting(const SampleBatch& batch) {
  Findings findings;
  add_if_any(findings, Level::kWarn, "accounting",
             gpus_where(batch,
                        [](const DeviceSample& device) {
                          return !has_mig(device) && !device.description->accounting_enabled.value_or(true);
                        }),
             "accounting mode is off: processes that exit between two process lists (ten a second) may get no account; "
             "their energy is booked to the others on the GPU or as unattributed; as root: gpu-ledger accounting on "
             "(before the workloads start)");
  if (findings.empty()) findings.push_back({Level::kOk, "accounting", "on, or not available (MIG)"});
  return findings;
}

Findings check_mig(const SampleBatch& batch) {
  Findings findings;
  const auto used = [](const DeviceSample& device) {
    return std::any_of(device.description->mig.begin(), device.description->mig.end(), [](const MigInstance& instance) {
      return instance.memory_used && instance.memory_total &&
             instance.memory_used->count > instance.memory_total->count / 20;
    });
  };
  add_if_any(findings, Level::kWarn, "mig",
             gpus_where(batch,
                        [](const DeviceSample& device) {
                          return device.up && has_mig(device) && device.description->mig.empty();
                        }),
             "in MIG mode without instances, so nothing can run there: nvidia-smi mig -cgi PROFILE -C makes one, "
             "nvidia-smi -i INDEX -mig 0 ends the mode");
  add_if_any(findings, Level::kFail, "mig",
             gpus_where(batch,
                        [&](const DeviceSample& device) {
                          return has_mig(device) && used(device) && device.processes.empty();
                        }),
             "MIG instances are in use, but the driver lists none of their processes: run as root on the host, or in a "
             "container with NVIDIA_MIG_MONITOR_DEVICES=all and the capability SYS_ADMIN");
  const auto fine = gpus_where(batch, [&](const DeviceSample& device) {
    return has_mig(device) && !device.description->mig.empty() && (!used(device) || !device.processes.empty());
  });
  add_if_any(findings, Level::kOk, "mig", fine, "MIG instances, and their processes can be listed");
  if (findings.empty()) findings.push_back({Level::kOk, "mig", "no GPU is in MIG mode"});
  return findings;
}

}  // namespace

Findings check_symbols(const nvml::NvmlProbe& probe) {
  if (probe.missing_symbols.empty()) return {{Level::kOk, "symbols", "the driver has every function that is used"}};
  std::string names;
  for (const std::string& name : probe.missing_symbols) names += (names.empty() ? "" : ", ") + name;
  return {{Level::kWarn, "symbols",
           "this driver lacks " + std::to_string(probe.missing_symbols.size()) +
               " functions, so their metrics are missing; a newer driver has them: " + names}};
}

Findings check_gpus(const SampleBatch& first, const SampleBatch& second) {
  Findings findings;
  const auto lost = gpus_where(second, [](const DeviceSample& device) { return !device.up; });
  add_if_any(findings, Level::kFail, "gpus", lost,
             "no answer: see dmesg for the Xid; it needs nvidia-smi --gpu-reset or the machine a reboot");
  // With all GPUs lost the driver counts as down too; its reason is shown only if it has no GPU.
  if (lost.empty() && !second.health.up) return {{Level::kFail, "gpus", second.health.reason}};
  const auto missing = second.missing_gpus.value_or(std::vector<std::string>());
  if (!missing.empty()) {
    std::string names;
    for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
    findings.push_back({Level::kWarn, "gpus",
                        "--gpu-devices names some that are not there: " + names +
                            "; the others are watched. nvidia-smi -L lists them"});
  } else if (lost.empty()) {
    findings.push_back({Level::kOk, "gpus", "all of them answer"});
  }
  for (const Findings& more :
       {check_energy(first, second), check_utilization(second), check_accounting(second), check_mig(second)}) {
    findings.insert(findings.end(), more.begin(), more.end());
  }
  return findings;
}

Finding check_split_error(const std::vector<SplitError>& gpus) {
  std::string text;
  for (const SplitError& gpu : gpus) {
    if (!gpu.ratio) continue;
    const long percent = std::lround(100 * std::clamp(*gpu.ratio, 0.0, 1.0));
    text += (text.empty() ? "GPU " : "; GPU ") + std::to_string(gpu.gpu) + " off by " +
            (percent < 1 ? "less than 1" : "about " + std::to_string(percent)) + " % (" +
            std::to_string(gpu.comparisons) + (gpu.comparisons == 1 ? " comparison)" : " comparisons)");
  }
  if (!text.empty()) return {Level::kOk, "split error", "of shared energy, by the running exporter: " + text};
  return {Level::kOk, "split error",
          "the running exporter has compared nothing yet: no process became or stopped being alone on a shared GPU"};
}

Findings check_processes(const SampleBatch& batch, const identity::ProcReader& proc) {
  Findings findings;
  add_if_any(findings, Level::kFail, "processes",
             gpus_where(batch,
                        [](const DeviceSample& device) {
                          return device.up && !has_mig(device) && device.processes.empty() && device.gpu_utilization &&
                                 device.gpu_utilization->value > kClearlyWorking;
                        }),
             "the GPU is busy, but the driver lists no process: it shows only those of its own pid namespace; set "
             "hostPID: true, or run on the host");
  size_t all = 0, found = 0, unread = 0, pods = 0, containers = 0, unclear = 0;
  for (const DeviceSample& device : batch.devices) {
    for (const ProcessSample& process : device.processes) {
      ++all;
      if (!proc.read_start_ticks(process.pid).ok()) continue;
      ++found;
      const auto cgroup = proc.read_cgroup(process.pid);
      if (!cgroup.ok()) {
        ++unread;
        continue;
      }
      const identity::CgroupHome home = identity::parse_cgroup(*cgroup);
      unclear += home.verdict != identity::CgroupHome::Verdict::kClear ? 1 : 0;
      pods += home.payer == identity::CgroupHome::Payer::kPod ? 1 : 0;
      containers += home.payer == identity::CgroupHome::Payer::kContainer ? 1 : 0;
    }
  }
  const std::string count = std::to_string(all);
  if (all == 0) {
    if (findings.empty()) findings.push_back({Level::kOk, "processes", "none uses a GPU right now"});
    return findings;
  }
  if (found == 0) {
    findings.push_back({Level::kFail, "processes",
                        "none of the " + count +
                            " that the driver lists is in /proc: set hostPID: true, or mount the host's /proc and give "
                            "its path to --proc-root"});
    return findings;
  }
  findings.push_back({Level::kOk, "processes", std::to_string(found) + " of " + count + " on the GPUs are in /proc"});
  if (unread > 0) {
    findings.push_back({Level::kFail, "cgroups",
                        "the cgroup of " + std::to_string(unread) +
                            " processes cannot be read, so they have no container: let this user read /proc/PID/cgroup "
                            "(uid 0, or the capability SYS_PTRACE where hidepid is set)"});
  } else if (unclear > 0) {
    findings.push_back({Level::kWarn, "cgroups",
                        std::to_string(unclear) +
                            " processes have cgroups that name two owners, or that the kernel cannot have "
                            "written: they are booked to the host; see cat /proc/PID/cgroup"});
  } else {
    findings.push_back(
        {Level::kOk, "cgroups",
         std::to_string(pods) + " in pods, " + std::to_string(containers) + " in other containers, the rest in none"});
  }
  return findings;
}

}  // namespace gpuledger::app
