// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "model/ledger.h"

// Values of labels in the metrics and of fields in the JSON.
namespace gpuledger::expose {

// For HELP: "pod, slurm_job, container, host or unknown".
inline std::string owner_kind_words() {
  std::string words;
  for (const OwnerKindRow& row : kOwnerKinds) {
    const bool last = &row == &kOwnerKinds[std::size(kOwnerKinds) - 1];
    words.append(words.empty() ? "" : last ? " or " : ", ").append(row.word);
  }
  return words;
}

inline std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::kIdle: return "idle";
    case Reason::kStatic: return "static";
    case Reason::kUnseen: return "unseen";
    case Reason::kExporterDown: return "exporter_down";
    case Reason::kAnomaly: return "anomaly";
  }
  return "unseen";
}

inline std::string_view energy_source_name(EnergySource source) {
  return source == EnergySource::kCounter ? "counter" : "power_integral";
}

inline std::string_view gpu_time_source_name(GpuTimeSource source) {
  return source == GpuTimeSource::kTrace ? "trace" : "samples";
}

// Empty: not known.
inline std::string_view process_type_name(const ProcessAccount& process) {
  if (process.compute) return process.graphics ? "both" : "compute";
  return process.graphics ? "graphics" : "";
}

// Empty: not known.
inline std::string_view mig_mode_name(const DeviceDescription& description) {
  if (!description.mig_known) return "";
  if (!description.mig_enabled) return "unsupported";
  return *description.mig_enabled ? "enabled" : "disabled";
}

}  // namespace gpuledger::expose
