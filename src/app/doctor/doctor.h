// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "base/clock.h"
#include "identity/proc_reader.h"
#include "model/sample.h"
#include "sample/nvml/nvml_source.h"

// The checks of `gpu-ledger doctor`. Each checks one thing and gives one line: its state and, if something is wrong,
// what to do. They change nothing, except for a test file that is written and removed.
namespace gpuledger::app {

struct Finding {
  enum class Level {
    kOk,
    kWarn,  // works, but not as well as it could
    kFail,  // something the settings ask for is missing
  };
  Level level = Level::kOk;
  std::string subject;  // "accounting"
  std::string text;
};
using Findings = std::vector<Finding>;

std::string write_finding(const Finding& finding);  // "warn  accounting: ...", with newline

// From two samples about a second apart.
Findings check_symbols(const nvml::NvmlProbe& probe);
Findings check_gpus(const SampleBatch& first, const SampleBatch& second);

// Can the batch's processes be found and named? Reads /proc.
Findings check_proc(const identity::ProcReader& proc);
Findings check_processes(const SampleBatch& batch, const identity::ProcReader& proc);

// Container runtimes whose daemons are needed to name the batch's processes.
std::set<std::string> runtimes_in_use(const SampleBatch& batch, const identity::ProcReader& proc);

// All sockets and servers that give names. Takes as long as the slowest, a few seconds at most. in_use: as above;
// empty: not known.
Findings check_names(const Config& config, const std::optional<std::set<std::string>>& in_use = std::nullopt);

// DCGM's engine and another exporter, if the settings name them. gpus: this node's UUIDs from the driver. The engine is
// asked only for its version and its GPUs: nothing that adds a watch or switches accounting on.
Findings check_dcgm(const Config& config);
Findings check_dcgm_exporter(const Config& config, const std::vector<GpuUuid>& gpus, const Clock& clock);

// How far the split of shared energy is off, by the books of the exporter that runs here.
struct SplitError {
  uint32_t gpu = 0;
  std::optional<double> ratio;  // empty: nothing was compared yet
  uint64_t comparisons = 0;
};
Finding check_split_error(const std::vector<SplitError>& gpus);

// The context-switch trace. If it is enabled, each GPU is traced briefly.
Findings check_exact_time(const Config& config, const std::string& library, const SampleBatch& batch);

// Where --push-url sends to, asked with an empty request, and the queue's folder. Empty without it.
Findings check_push(const Config& config);
// Whether the prolog's files can be trusted. No finding if there is no such folder: most nodes have no Slurm.
Findings check_slurm_jobs(const Config& config);

Findings check_textfile(const Config& config);
Findings check_state_file(const Config& config);
Findings check_listen_addresses(const Config& config);

}  // namespace gpuledger::app
