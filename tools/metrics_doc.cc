// SPDX-License-Identifier: Apache-2.0
// Prints docs/metrics.md from the catalog of metrics, so that the two cannot differ.
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "expose/catalog.h"
#include "expose/collectors/dcgm.h"

namespace {

using namespace gpuledger::expose;

struct Chapter {
  std::string_view collector;
  std::string_view text;
};

constexpr std::string_view kIntroduction = R"(# Metrics

Generated from the catalog in the source by `gpu_ledger_metrics_doc > docs/metrics.md`; edit the rows in src/expose/collectors instead.

- An unknown value has no series: it is never 0, -1 or NaN.
- A label without a value is left out.
- `node` is added to every series if `--node-name` is set. If `POD_NAME` and `POD_NAMESPACE` are set, the exporter's own
  `pod` and `namespace` are added to `gpu_idle_*` series without them.
- Energies are exact decimals of whole microjoules.
- While a GPU is lost, all values that are read from it are absent. The ledger's own counters (energy, GPU time, Xid
  errors) stay.
- `/metrics` gives text format 0.0.4 or OpenMetrics 1.0, by the Accept header, with the same series. In OpenMetrics
  the HELP and TYPE lines name a counter's family without `_total`, as that format requires.

Names that begin with `gpu_ledger_` come first; names of older exporters follow: the collectors process, idle and
processlist, and the device view. `--collector.preset=lean` leaves those out.

The books balance in every scrape, for every GPU, to the millijoule:

    gpu_ledger_device_energy_joules_total
      = gpu_ledger_pod_energy_joules_total + gpu_ledger_slurm_job_energy_joules_total
      + gpu_ledger_container_energy_joules_total + gpu_ledger_host_energy_joules_total
      + gpu_ledger_unknown_owner_energy_joules_total + gpu_ledger_closed_energy_joules
      + gpu_ledger_device_unattributed_joules_total

each summed over its other labels. `gpu_ledger_closed_energy_joules` is the energy of owners whose accounts are closed
(`--owner-retention`, `--max-ended-owners`) or whose series are left out (`--max-series`). It is a gauge: their own
counters have counted these joules before. So `increase()` over the owners' counters is complete, and for a sum of
current counter values the gauge must be added. An owner's counter is at least the sum of its listed processes, and
equals it until the first of them is dropped.
)";

// First our own names, then those of older exporters.
constexpr Chapter kChapters[] = {
    {"device", "One set per GPU."},
    {"device-detail",
     "More values of each GPU. The alerts, rules and dashboards of this project do not use them. Off with\n"
     "`--collector.preset=lean`."},
    {"pod",
     "The owners' accounts: every joule of a process is booked to exactly one owner, the first that fits of pod, Slurm "
     "job,\ncontainer, host. They include running and exited processes and never fall. An ended owner stays "
     "for\n`--owner-retention`; then its joules are in the closed account of its kind and namespace.\n\n"
     "A Slurm job's number is in the label `slurm_job_id`. The label `job` has the same value; it is deprecated and "
     "goes in\n0.3.0, because Prometheus has a label `job` of its own."},
    {"process-info",
     "Every process that uses or used a GPU: whose it is and what it is. `gpu_ledger_process_info` joins with the "
     "other series of\nthe process by `pid` and `gpu`."},
    {"process-native",
     "Off by default, on with `--collector.preset=lean`: energy, time and memory of each process, as in the collector "
     "process,\nwith names that begin with `gpu_ledger_`."},
    {"self", "The exporter itself."},
    {"driver-calls",
     "Off by default, on with `--collector.driver-calls`: the duration of each driver call. Whether any call is slow "
     "shows in\n`gpu_ledger_sample_duration_seconds`, which is always on."},
    {"process",
     "Every process that uses or used a GPU. The names begin with `--metric-prefix`, by default `my_gpu_process`.\n"
     "An exited process stays for `--metric-retention` with `active` 0 and its counters, without utilization and "
     "memory.\nIf a pid is used again by a process of the same name and owner, it has the same series: counters "
     "continue."},
    {"idle",
     "Processes that hold GPU memory without work. A process is idle after two evaluations (`--idle-interval`) with "
     "none of\nits engines busy. If the GPU reports no utilization per process, the idle series are absent. They are "
     "also absent for\na process that is only in the driver's graphics list (Xorg, a desktop), and its memory does not "
     "count as idle."},
    {"processlist",
     "The running processes, in the form that is used with node_exporter's textfile collector.\n"
     "`gpu_process_count` keeps its older name, the only one that `promtool check metrics` complains about "
     "(`_count`)."},
};

void print_rows(std::string_view collector) {
  std::printf("| name | type | unit | labels | |\n|---|---|---|---|---|\n");
  for (const Family& family : catalog()) {
    if (family.collector != collector) continue;
    std::string labels;
    for (const char c : family.labels) labels += c == ' ' ? std::string(", ") : std::string(1, c);
    std::printf("| `%s` | %s | %s | %s | %s |\n", full_name(family, "my_gpu_process").c_str(),
                std::string(type_name(family.type)).c_str(), std::string(family.unit).c_str(), labels.c_str(),
                std::string(family.help).c_str());
  }
}

struct DcgmChapter {
  std::string_view collector;
  std::string_view text;
  std::span<const DcgmFamily> (*families)();
};

constexpr std::string_view kGpuIntroduction = R"(
# Device view

`/gpu/metrics` shows the GPUs under the names of DCGM's exporters, with values from the driver. The types of the names
are explained in [decisions/0011](decisions/0011-dcgm-names.md).

- There is one line per GPU and pod: pods with the GPU allocated, and pods with processes on it. Without a pod the pod
  labels are left out.
- A value that the GPU or its driver does not report has no line.
- On a GPU that several pods share, power and framebuffer used are each pod's part, and one line without pod labels has
  the rest: their sum is the device's reading. The other readings are repeated.
- Energy is always each pod's part by the ledger, and one line without pod labels for the rest. These counters never
  fall, and ended pods keep theirs.
- In OpenMetrics, counters whose names do not end in `_total` have the type unknown.
)";

constexpr DcgmChapter kDcgmChapters[] = {
    {"dcgm", "Labels: container_name, gpu, node (with `--node-name`), pod_name, pod_namespace, uuid.", legacy_families},
    {"dcgm-modern",
     "Off by default. Labels: gpu, UUID, pci_bus_id, device, modelName, GPU_I_PROFILE and GPU_I_ID (on MIG, where each "
     "GPU\ninstance has lines of its own), Hostname, DCGM_FI_DRIVER_VERSION, container, namespace, pod.",
     modern_families},
};

void print_dcgm(const DcgmChapter& chapter) {
  std::printf("\n## %s\n\n%s\n\n| name | type | |\n|---|---|---|\n", std::string(chapter.collector).c_str(),
              std::string(chapter.text).c_str());
  for (const DcgmFamily& family : chapter.families()) {
    std::printf("| `%s` | %s | %s |\n", std::string(family.name).c_str(), std::string(type_name(family.type)).c_str(),
                std::string(family.help).c_str());
  }
}

}  // namespace

int main() {
  std::printf("%s", std::string(kIntroduction).c_str());
  for (const Chapter& chapter : kChapters) {
    std::printf("\n## %s\n\n%s\n\n", std::string(chapter.collector).c_str(), std::string(chapter.text).c_str());
    print_rows(chapter.collector);
  }
  std::printf("%s", std::string(kGpuIntroduction).c_str());
  for (const DcgmChapter& chapter : kDcgmChapters) print_dcgm(chapter);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
