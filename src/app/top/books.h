// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuledger::app::top {

// What `gpu-ledger top` shows: the JSON of /api/v1/snapshot, from its own pipeline or from a running exporter. An empty
// optional is unknown. Names are unchanged: clean them before they are shown.
struct Books {
  struct Gpu {
    uint32_t index = 0;
    std::string uuid;
    std::string model;
    bool up = false;
    double joules = 0;
    bool integrates = false;  // the joules are summed from power readings: without a reading no energy is booked
    std::optional<double> watts;
    std::optional<double> limit_watts;
    std::optional<double> busy;  // ratio
    std::optional<double> memory_used;
    std::optional<double> memory_total;
    std::optional<double> celsius;
    std::optional<double> attribution_error;  // ratio
    uint64_t attribution_comparisons = 0;
    std::vector<std::string> health;
  };

  // The account of a process or of an owner on one GPU.
  struct Account {
    uint32_t gpu = 0;
    std::string gpu_uuid;
    std::string owner_kind;
    std::string owner;  // for people
    std::string pod_uid;
    std::string container;
    std::string container_id;
    double joules = 0;  // alone and shared
    double alone_joules = 0;
    double shared_joules = 0;
    double error_joules = 0;  // one standard error, of the shared part
  };
  // The account of an owner, with more fields.
  struct OwnerSum : Account {
    std::optional<double> gpu_seconds;
    std::optional<double> memory_peak;
    std::optional<double> gone_seconds;  // since its last process; empty: one runs
    std::string job;                     // of Slurm, as are the fields below
    std::string step;
    std::string account;
    std::string partition;
    std::string uid;
    std::string user_name;
    std::optional<double> job_gpus;
    std::optional<double> job_started;  // seconds since 1970
    bool job_restarted = false;
    bool job_steps_closed = false;
  };
  struct Process : Account {
    std::string mig_uuid;
    int64_t pid = 0;
    double started = 0;
    std::string name;
    bool active = false;
    std::optional<double> share;  // of the GPU's time
    std::optional<double> memory;
    std::optional<double> idle_seconds;  // empty: not idle, or not known
  };

  struct Trouble {
    std::string source;
    std::string reason;
  };

  double at = 0;  // seconds since 1970
  uint64_t cycle = 0;
  bool simulated = false;
  std::string node;
  std::string version;
  std::vector<Gpu> gpus;
  std::vector<Process> processes;
  std::vector<OwnerSum> owners;
  std::vector<Trouble> troubles;  // sources that are down, and what is left out
  bool some_left_out = false;     // by --max-series
};

// Never throws. An error: this is not the JSON of /api/v1/snapshot.
Result<Books> parse_books(std::string_view json);

}  // namespace gpuledger::app::top
