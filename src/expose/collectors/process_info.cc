// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "expose/collectors/collectors.h"
#include "expose/words.h"

// What the older exporters do not report of a process: its owner and user, its type and its peak memory.
namespace gpuledger::expose {
namespace {

// Fields of an owner that every series of the process has as labels already, or under a better name.
bool is_told(std::string_view field) {
  constexpr std::array kTold = {kNamespaceField,   kPodField, kContainerField, kPodUidField,
                                kContainerIdField, kJobField, kUserField};
  return std::any_of(kTold.begin(), kTold.end(), [&](const OwnerField& told) { return told.name == field; });
}

// The others, of all kinds.
std::string labels_of_owners() {
  std::string labels;
  std::set<std::string_view> seen;
  for (const OwnerKindRow& kind : kOwnerKinds) {
    for (const OwnerField& field : kind.fields) {
      if (!is_told(field.name) && seen.insert(field.name).second) labels.append(" ").append(field.name);
    }
  }
  return labels;
}

void add_info(const ProcessSeries& series, Samples& samples) {
  static const ConstantLabels kNone;
  const ProcessAccount& process = *series.newest;
  const Owner& owner = process.identity.owner;
  LabelText labels(kNone);
  labels.add("uid", process.identity.uid)
      .add("user_name", process.identity.user_name)
      .add("type", process_type_name(process))
      .add("owner", owner_kind(owner.kind).word);
  for (const OwnerField& field : owner_kind(owner.kind).fields) {
    if (!is_told(field.name)) labels.add(field.name, owner.*field.value);
  }
  samples.add(uint64_t{1}, labels.take());
}

constexpr Row<ProcessSeries> kProcessInfoRows[] = {
    {"gpu_ledger_process_info", kGauge, "uid user_name type owner",
     "A process that uses or used a GPU, always 1. uid is its real uid; user_name is the uid's name in the host's "
     "passwd (absent if not there); type is compute, graphics or both, by the driver's lists; owner is {}.",
     [](const ProcessSeries& series, Samples& samples) { add_info(series, samples); }},
    {"gpu_ledger_process_memory_peak_bytes", kGauge, "",
     "Highest GPU memory in bytes that the process held on the GPU. It never falls and stays after exit. Absent if the "
     "driver does not report it.",
     [](const ProcessSeries& series) { return series.memory_peak; }, "memory_peak_bytes"},
    {"gpu_ledger_process_encoder_utilization_ratio", kGauge, "",
     "Share of time in which the process kept the video encoder busy, 0 to 1. Absent until its first use, if the GPU "
     "reports no utilization per process, and once the process has exited.",
     [](const ProcessSeries& series) { return ratio_of(series, series.newest->encoder); }, "encoder_utilization_ratio"},
    {"gpu_ledger_process_decoder_utilization_ratio", kGauge, "",
     "Share of time in which the process kept the video decoder busy, 0 to 1. Absent until its first use, if the GPU "
     "reports no utilization per process, and once the process has exited.",
     [](const ProcessSeries& series) { return ratio_of(series, series.newest->decoder); }, "decoder_utilization_ratio"},
};

}  // namespace

std::span<const Row<ProcessSeries>> process_info_rows() {
  return kProcessInfoRows;
}

std::vector<Family> process_info_families() {
  CatalogBuilder catalog("process-info");
  catalog.add(process_info_rows(), kProcessLabels, &View::processes, &ProcessSeries::labels, owner_kind_words());
  std::vector<Family> families = catalog.take();
  families.front().labels += labels_of_owners();
  return families;
}

}  // namespace gpuledger::expose
