// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "app/config/config.h"
#include "base/clock.h"
#include "identity/proc_reader.h"
#include "model/sample.h"
#include "sample/nvml/nvml_source.h"

// The checks of `gpu-ledger doctor`. Each looks at one thing and says in one line how it is and, where something is
// wrong, what to do. They change nothing but for a file that is made and removed again where one will be written.
namespace gpuledger::app {

struct Finding {
  enum class Level {
    kOk,
    kWarn,  // works, but less well than it could
    kFail,  // something the settings ask for cannot be had
  };
  Level level = Level::kOk;
  std::string subject;  // "accounting"
  std::string text;
};
using Findings = std::vector<Finding>;

std::string write_finding(const Finding& finding);  // "warn  accounting: ...", with the end of the line

// From two looks at the hardware, a second or so apart.
Findings check_symbols(const nvml::NvmlProbe& probe);
Findings check_gpus(const SampleBatch& first, const SampleBatch& second);

// Can the processes of the batch be found and named? Reads /proc.
Findings check_proc(const identity::ProcReader& proc);
Findings check_processes(const SampleBatch& batch, const identity::ProcReader& proc);

// Every socket and server that tells names. Takes as long as the slowest answer, a few seconds at most.
Findings check_names(const Config& config);

// DCGM's engine and another exporter, where the settings name them. gpus: this node's UUIDs, as the driver tells them.
// The engine is asked for its version and its GPUs, and for nothing that would make it watch something or switch
// accounting on.
Findings check_dcgm(const Config& config);
Findings check_dcgm_exporter(const Config& config, const std::vector<GpuUuid>& gpus, const Clock& clock);

// The trace of context switches. Where it is asked for, each GPU is traced for a moment.
Findings check_exact_time(const Config& config, const std::string& library, const SampleBatch& batch);

Findings check_textfile(const Config& config);
Findings check_state_file(const Config& config);
Findings check_listen_addresses(const Config& config);

}  // namespace gpuledger::app
