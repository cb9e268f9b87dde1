// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <set>
#include <string>

#include "expose/collectors/collectors.h"
#include "expose/pod_label.h"
#include "expose/words.h"

// The owners' accounts: for each kind of owner the same metrics under its own name and labels (model/owner.h).
namespace gpuledger::expose {
namespace {

// {}: `processes` of the kind's row.
constexpr Row<OwnerSeries> kOwnerRows[] = {
    {"_energy_joules_total", kCounter, "energy_estimated",
     "Energy in joules of {}: booked while a process was alone on the GPU (energy_estimated false) and while it shared "
     "it (true).",
     [](const OwnerSeries& series, Samples& samples) { add_energy(series.booked, samples); }},
    {"_energy_standard_error_joules", kGauge, "",
     "One standard error of the estimated part of the owner's energy, in joules. Errors of processes on one GPU are "
     "correlated, so it is not the sum of the processes' errors. Absent while nothing is estimated.",
     [](const OwnerSeries& series) {
       const double error = whole_microjoules(std::sqrt(series.variance));
       return series.booked.shared > Energy() ? std::optional(error) : std::nullopt;
     },
     "energy_standard_error_joules"},
    {"_gpu_seconds_total", kCounter, "",
     "GPU time in seconds of {}. Absent if the GPU reports no utilization per process (MIG).",
     [](const OwnerSeries& series) { return series.booked.gpu_time; }, "gpu_seconds"},
    {"_memory_peak_bytes", kGauge, "",
     "Highest GPU memory in bytes at one time on this GPU, of {}. It never falls. Absent if the driver does not report "
     "it.",
     [](const OwnerSeries& series) { return series.memory_peak; }, "memory_peak_bytes"},
};

constexpr Row<OwnerSeries> kUserRows[] = {
    {"_info", kGauge, "uid user_name account partition",
     "The user, account and partition of {}, always 1. account and partition are from the file that the site's prolog "
     "writes (--slurm-job-dir); they are absent without it. user_name is the uid's name in the host's passwd, else in "
     "that file. uid and user_name are absent if the processes have different users. The series is absent if none of "
     "these is known.",
     [](const OwnerSeries& series, Samples& samples) {
       static const ConstantLabels kNone;
       const OwnerAccount& owner = *series.account;
       if (owner.uid.empty() && owner.job.account.empty() && owner.job.partition.empty()) return;
       LabelText labels(kNone);
       labels.add("uid", owner.uid)
           .add("user_name", owner.user_name)
           .add("account", owner.job.account)
           .add("partition", owner.job.partition);
       samples.add(uint64_t{1}, labels.take());
     }},
};

constexpr Row<OwnerSeries> kPodOwnerRows[] = {
    {"_idle_memory_bytes", kGauge, "",
     "GPU memory in bytes that idle processes of a Kubernetes container hold. Absent if the GPU reports no utilization "
     "per process, and if the container has no process any more.",
     [](const OwnerSeries& series) { return series.idle_memory; }},
};

void add_pod_info(const PodFacts& pod, Samples& samples) {
  LabelText labels = samples.view().labels();
  labels.add("namespace", pod.name_space)
      .add("pod", pod.pod)
      .add("pod_uid", pod.pod_uid)
      .add("name_source", pod.name_source);
  std::set<std::string> used;
  for (const auto& [name, value] : pod.labels) {
    // Two names can become one ("a.b" and "a-b"); a duplicate label would make the whole scrape fail.
    const std::string clean = pod_label_name(name);
    if (used.insert(clean).second) labels.add(clean, value);
  }
  samples.add_as(labels.take(), uint64_t{1});
}

constexpr Row<PodSeries> kPodRows[] = {
    {"gpu_ledger_pod_info", kGauge, "namespace pod pod_uid name_source label_*",
     "A pod that uses a GPU or has one allocated, always 1. label_* are the pod's labels that --pod-labels names; "
     "name_source is the source of the pod's name.",
     [](const PodSeries& pod, Samples& samples) { add_pod_info(*pod, samples); }},
    {"gpu_ledger_container_requested_devices", kGauge, "namespace pod container resource",
     "GPUs, MIG instances or replicas of a resource that a container of a pod requests, by its limits. Absent for pods "
     "without a process or an allocation here, and if the source of pod names does not report it (cri).",
     [](const PodSeries& pod, Samples& samples) {
       for (const GpuRequest& request : pod->requests) {
         samples.add_as(request_labels(samples.view(), pod->name_space, pod->pod, request.container, request.resource),
                        request.count);
       }
     }},
};

constexpr Row<ClosedSeries> kClosedRows[] = {
    {"gpu_ledger_closed_energy_joules", kGauge, "energy_estimated",
     "Energy in joules of owners without their own series: they ended and --owner-retention is over, or "
     "--max-ended-owners or --max-series left them out. It is a gauge because the owners' counters have counted these "
     "joules before, so increase() over those counters is complete. kind is {}.",
     [](const ClosedSeries& closed, Samples& samples) { add_energy(closed.second, samples); }},
    {"gpu_ledger_closed_gpu_seconds", kGauge, "",
     "GPU time in seconds of owners without their own series. Absent if the GPU reports no utilization per process.",
     [](const ClosedSeries& closed) { return closed.second.gpu_time; }},
};

std::string closed_labels(const View& view, const ClosedKey& key) {
  return view.labels()
      .add("kind", owner_kind(key.kind).word)
      .add("namespace", key.name_space)
      .add("gpu", key.gpu_index)
      .take();
}

void add_owners(CatalogBuilder& catalog, const OwnerKindRow& kind, std::span<const Row<OwnerSeries>> rows) {
  std::string labels;
  for (const OwnerField& field : kind.fields) labels.append(field.name).append(" ");
  labels += "gpu";
  const auto of_kind = [wanted = kind.kind](const View& view, const auto& visit) {
    for (const OwnerSeries& series : view.owners) {
      if (series.kind() == wanted) visit(series, series.labels);
    }
  };
  catalog.add(rows, labels, of_kind, "gpu_ledger_" + std::string(kind.metric), kind.processes);
}

}  // namespace

std::span<const Row<OwnerSeries>> owner_rows() {
  return kOwnerRows;
}

std::span<const Row<OwnerSeries>> pod_owner_rows() {
  return kPodOwnerRows;
}

std::span<const Row<OwnerSeries>> user_rows() {
  return kUserRows;
}

std::span<const Row<ClosedSeries>> closed_rows() {
  return kClosedRows;
}

std::span<const Row<PodSeries>> pod_rows() {
  return kPodRows;
}

std::vector<Family> pod_families() {
  CatalogBuilder catalog("pod");
  for (const OwnerKindRow& kind : kOwnerKinds) {
    add_owners(catalog, kind, owner_rows());
    if (kind.of_user) add_owners(catalog, kind, user_rows());
    if (kind.kind != OwnerKind::kPod) continue;
    add_owners(catalog, kind, pod_owner_rows());
    catalog.add(pod_rows(), "", [](const View& view, const auto& visit) {
      for (const PodFacts* pod : view.pods) visit(pod, "");
    });
  }
  const auto each_closed = [](const View& view, const auto& visit) {
    for (const ClosedSeries& closed : view.closed) visit(closed, closed_labels(view, closed.first));
  };
  catalog.add(closed_rows(), "kind namespace gpu", each_closed, {}, owner_kind_words());
  return catalog.take();
}

}  // namespace gpuledger::expose
