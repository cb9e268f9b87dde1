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

Made from the catalog in the source by `gpu_ledger_metrics_doc > docs/metrics.md`; edit the rows in src/expose/collectors instead.

- What a GPU cannot say has no series: never 0, -1 or NaN.
- A label without a value is left out.
- `node` is added to every series when `--node-name` is set; `pod` and `namespace` of the exporter itself are added to
  the `gpu_idle_*` series that have none, when `POD_NAME` and `POD_NAMESPACE` are set.
- Energies are exact decimals of whole microjoules.
- Gauges of a GPU that is down are absent; its counters stay.
- `/metrics` gives text format 0.0.4 or OpenMetrics 1.0, by the Accept header: the same series in both. In OpenMetrics
  the HELP and TYPE lines name a counter's family without `_total`, as that format wants it.

The books balance in every single scrape. For every GPU, to the millijoule:

    gpu_ledger_device_energy_joules_total
      = gpu_ledger_pod_energy_joules_total + gpu_ledger_slurm_job_energy_joules_total
      + gpu_ledger_container_energy_joules_total + gpu_ledger_host_energy_joules_total
      + gpu_ledger_unknown_owner_energy_joules_total + gpu_ledger_closed_energy_joules
      + gpu_ledger_device_unattributed_joules_total

each summed over its other labels. `gpu_ledger_closed_energy_joules` has the owners whose own series have ended
(`--owner-retention`, `--max-ended-owners`) or are left out (`--max-series`). It is a gauge: their joules were counted by
their own counters, so `increase()` over the counters is what was spent, and a sum of the counters as they stand needs the
gauge added. An owner's counter is at least the sum of its listed processes, and equals it until
the first of them is forgotten.
)";

constexpr Chapter kChapters[] = {
    {"process",
     "Every process that uses or used a GPU. The names begin with `--metric-prefix`, `my_gpu_process` unless told.\n"
     "An exited process stays for `--metric-retention` with `active` 0, its counters, and without utilisation and "
     "memory.\nA pid that is used again by a process of the same name and owner goes on with the same series: counters "
     "add up."},
    {"idle",
     "Who holds GPU memory without working. A process is idle after two evaluations (`--idle-interval`) that saw none "
     "of\nits engines busy. Where the GPU cannot report utilisation nobody is called idle, and the idle series are "
     "absent."},
    {"processlist",
     "The processes that run now, in the form that node_exporter's textfile collector is fed with.\n"
     "`gpu_process_count` keeps its older name, the only one that `promtool check metrics` complains about "
     "(`_count`)."},
    {"device", "One set per GPU."},
    {"pod",
     "The owners' accounts: every joule of a process is booked to exactly one owner, the first that fits of pod, Slurm "
     "job,\ncontainer, host. They hold living and gone processes alike and never fall. An ended owner stays "
     "for\n`--owner-retention`; then its joules are in the closed account of its kind and namespace."},
    {"self", "The exporter itself."},
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

`/gpu/metrics` shows the GPUs under the names of DCGM's exporters, from the driver alone; why each name has the type it
has is told in [decisions/0011](decisions/0011-dcgm-names.md).

- A line per GPU and pod on it: pods that were given the GPU, and pods whose processes run there. Without a pod the pod
  labels are left out.
- On a GPU that several pods share, power and framebuffer used are each pod's part, and one line without pod labels has
  the rest: their sum is the device's reading. The other readings are repeated.
- Energy is always the pods' parts, as the ledger charged them, and a line without pod labels for the rest. None of
  these ever falls, and pods that are gone keep theirs.
- In OpenMetrics, counters whose names do not end in `_total` have the type unknown.
)";

constexpr DcgmChapter kDcgmChapters[] = {
    {"dcgm", "Labels: container_name, gpu, node (with `--node-name`), pod_name, pod_namespace, uuid.", legacy_families},
    {"dcgm-modern",
     "Off unless asked for. Labels: gpu, UUID, pci_bus_id, device, modelName, GPU_I_PROFILE and GPU_I_ID (on MIG, "
     "where "
     "each GPU\ninstance has lines of its own), Hostname, DCGM_FI_DRIVER_VERSION, container, namespace, pod.",
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
