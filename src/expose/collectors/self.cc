// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "expose/collectors/collectors.h"

// The exporter itself.
namespace gpuledger::expose {
namespace {

void add_folded(const View& view, Samples& samples) {
  const FoldedAccounts& folded = view.cycle.ledger.folded;
  const auto add = [&](std::string_view account, std::string_view reason, uint64_t count) {
    samples.add_as(view.labels().add("account", account).add("reason", reason).take(), count);
  };
  add("owner", "limit", folded.owners_over_limit);
  add("owner", "retention", folded.owners_over_time);
  add("process", "limit", folded.processes_over_limit);
}

bool has_nameless_pod(const IdentityMap& identities) {
  return std::any_of(identities.by_pid.begin(), identities.by_pid.end(), [](const auto& process) {
    const Owner& owner = process.second.owner;
    return owner.kind == OwnerKind::kPod && owner.pod.empty();
  });
}

// Empty: there is no Kubernetes, or its sources have not answered yet.
std::optional<bool> pod_names_missing(const View& view) {
  static constexpr std::string_view kTellers[] = {"pods", "pods-api", "apiserver", "kubelet", "cri"};
  bool any = false;
  bool told = false;
  bool undecided = false;
  for (const SourceHealth& health : view.sources) {
    const bool allocations = health.source == "pod-resources";
    if (!allocations && std::find(std::begin(kTellers), std::end(kTellers), health.source) == std::end(kTellers))
      continue;
    any = true;
    // Allocations identify the pod of a process only if one pod has the GPU alone.
    told |= health.up && (!allocations || !has_nameless_pod(*view.cycle.identities));
    undecided |= health.undecided;
  }
  return any && (told || !undecided) ? std::optional(!told) : std::nullopt;
}

// A source that fails is not shown while nothing needs it.
bool is_shown(const SourceHealth& health) {
  return health.up || health.needed;
}

void add_dropped(const View& view, Samples& samples) {
  if (!view.cycle.push) return;
  const auto add = [&](std::string_view reason, uint64_t count) {
    samples.add_as(view.labels().add("reason", reason).take(), count);
  };
  add("queue_full", view.cycle.push->over_limit);
  add("rejected", view.cycle.push->rejected);
  add("unreadable", view.cycle.push->unreadable);
}

// Of a node that pushes.
template <auto kMember>
std::optional<uint64_t> pushed(const View& view) {
  return view.cycle.push ? std::optional((*view.cycle.push).*kMember) : std::nullopt;
}

std::optional<Nanoseconds> push_age(const View& view) {
  if (!view.cycle.push) return std::nullopt;
  const Nanoseconds now = view.cycle.batch.at.wall;
  return std::max(Nanoseconds(0), now - view.cycle.push->oldest_waiting.value_or(now));
}

constexpr Row<View> kLeftOut = {
    "gpu_ledger_series_left_out", kGauge, "collector",
    "Series that --max-series left out of this exposition, by collector: those with the least energy.",
    [](const View& view, Samples& samples) {
      for (const auto& [collector, count] : view.left_out) {
        samples.add_as(view.labels().add("collector", collector).take(), count);
      }
    }};

constexpr Row<View> kSelfRows[] = {
    {"gpu_ledger_build_info", kGauge, "version revision", "The running program, always 1.",
     [](const View& view, Samples& samples) {
       samples.add_as(view.labels().add("version", view.options.version).add("revision", view.options.revision).take(),
                      uint64_t{1});
     }},
    {"gpu_ledger_simulated", kGauge, "", "1 while the numbers come from the simulated node. Absent on real GPUs.",
     [](const View& view) { return view.cycle.simulated ? std::optional(true) : std::nullopt; }},
    {"gpu_ledger_source_up", kGauge, "source",
     "1 while the source answers, else 0. Absent while it does not answer and is not needed, for example docker while "
     "no container uses a GPU.",
     [](const View& view, Samples& samples) {
       for (const SourceHealth& health : view.sources) {
         if (!is_shown(health)) continue;
         samples.add_as(view.labels().add("source", health.source).take(), health.up);
       }
     }},
    {"gpu_ledger_source_errors_total", kCounter, "source code",
     "Failures of the source since the program started, by code. Absent before the first, and while "
     "gpu_ledger_source_up is absent.",
     [](const View& view, Samples& samples) {
       for (const SourceHealth& health : view.sources) {
         if (!is_shown(health)) continue;
         for (const auto& [code, count] : health.errors) {
           samples.add_as(view.labels().add("source", health.source).add("code", code).take(), count);
         }
       }
     }},
    {"gpu_ledger_sample_duration_seconds", kHistogram, "",
     "Seconds per cycle, from the first driver call to the published snapshot.",
     [](const View& view) { return &view.cycle.cycle_durations; }},
    {"gpu_ledger_snapshot_timestamp_seconds", kGauge, "",
     "Time of the sample for this exposition, in seconds since 1970.",
     [](const View& view) { return view.cycle.batch.at.wall; }},
    {"gpu_ledger_processes_without_owner", kGauge, "", "Processes in a container or pod whose name was not found.",
     [](const View& view) { return uint64_t{view.cycle.identities->without_owner}; }},
    {"gpu_ledger_pod_names_missing", kGauge, "",
     "1 while no source of pod names answers, else 0. Also 0 while pod-resources answers and names every pod on a GPU; "
     "it can name a pod that shares its GPU with no other pod. Absent without Kubernetes, and until the sources have "
     "answered. gpu_ledger_source_up shows which source is down; the log and gpu-ledger doctor show why.",
     [](const View& view) { return pod_names_missing(view); }},
    {"gpu_ledger_accounts_folded_total", kCounter, "account reason",
     "Accounts dropped or closed since the program started: processes above --max-exited-processes (reason limit; "
     "their owner keeps the joules), owners after --owner-retention (retention) or above --max-ended-owners (limit), "
     "whose joules are in gpu_ledger_closed_energy_joules.",
     [](const View& view, Samples& samples) { add_folded(view, samples); }},
    {"gpu_ledger_push_samples_sent_total", kCounter, "",
     "Samples that the receiver at --push-url has accepted since the program started. Only with --push-url.",
     [](const View& view) { return pushed<&PushStats::sent>(view); }},
    {"gpu_ledger_push_samples_dropped_total", kCounter, "reason",
     "Samples that were dropped: the receiver refused them (rejected), they were the oldest above --push-queue-size "
     "(queue_full), or their file in --push-queue-dir could not be read (unreadable). Counter totals are not affected: "
     "the next sample has the full value. Only with --push-url.",
     [](const View& view, Samples& samples) { add_dropped(view, samples); }},
    {"gpu_ledger_push_queue_samples", kGauge, "", "Samples that wait to be sent. Only with --push-url.",
     [](const View& view) { return pushed<&PushStats::waiting>(view); }},
    {"gpu_ledger_push_queue_bytes", kGauge, "",
     "Bytes that wait to be sent, on disk or in memory. Only with --push-url.",
     [](const View& view) { return pushed<&PushStats::waiting_bytes>(view); }},
    {"gpu_ledger_push_queue_age_seconds", kGauge, "",
     "Age of the oldest waiting sample in seconds, 0 if none waits. Only with --push-url.",
     [](const View& view) { return push_age(view); }},
    {"gpu_ledger_push_last_success_timestamp_seconds", kGauge, "",
     "Time at which the receiver last accepted samples, in seconds since 1970. Absent before the first. Only with "
     "--push-url.",
     [](const View& view) { return view.cycle.push ? view.cycle.push->last_success : std::nullopt; }},
    {"process_cpu_seconds_total", kCounter, "", "User and system CPU time of the exporter in seconds.",
     [](const View& view) { return view.cycle.self.cpu_seconds; }},
    {"process_start_time_seconds", kGauge, "", "Start time of the exporter in seconds since 1970.",
     [](const View& view) { return view.cycle.self.start_time_seconds; }},
    {"process_resident_memory_bytes", kGauge, "", "Resident memory of the exporter in bytes.",
     [](const View& view) { return view.cycle.self.resident_bytes; }},
    {"process_virtual_memory_bytes", kGauge, "", "Virtual memory of the exporter in bytes.",
     [](const View& view) { return view.cycle.self.virtual_bytes; }},
    {"process_open_fds", kGauge, "", "Open file descriptors of the exporter.",
     [](const View& view) { return view.cycle.self.open_fds; }},
    {"process_max_fds", kGauge, "", "Limit of open file descriptors of the exporter. Absent without a limit.",
     [](const View& view) { return view.cycle.self.max_fds; }},
    {"process_threads", kGauge, "", "Threads of the exporter.",
     [](const View& view) { return view.cycle.self.threads; }},
    kLeftOut,
    // Counts the samples before it, so it must be the last.
    {"gpu_ledger_series", kGauge, "", "Samples in this exposition, including this one.",
     [](const View&, Samples& samples) { samples.add(uint64_t{samples.written() + 1}); }},
};

constexpr Row<View> kDriverRows[] = {
    {"gpu_ledger_driver_call_duration_seconds", kHistogram, "call", "Seconds per driver call.",
     [](const View& view, Samples& samples) {
       for (const auto& [call, durations] : view.cycle.batch.call_durations) {
         samples.add_as(view.labels().add("call", call).take(), &durations);
       }
     }},
};

}  // namespace

const Row<View>& left_out_row() {
  return kLeftOut;
}

std::vector<Family> driver_call_families() {
  CatalogBuilder catalog("driver-calls");
  catalog.add_of_node(kDriverRows);
  return catalog.take();
}

std::vector<Family> self_families() {
  CatalogBuilder catalog("self");
  catalog.add_of_node(kSelfRows);
  return catalog.take();
}

}  // namespace gpuledger::expose
