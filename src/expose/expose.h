// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "base/result.h"
#include "model/history.h"
#include "model/snapshot.h"

namespace gpuledger::expose {

struct ExposeOptions {
  std::string process_prefix = "my_gpu_process";
  size_t max_series = 15000;  // in one document; 0: no limit
  std::set<std::string> collectors = {"process", "process-info",  "idle", "processlist",
                                      "device",  "device-detail", "pod",  "self"};
  // Constant labels, left out if empty; a series' own label has precedence.
  std::string node;        // on every series
  std::string pod;         // on the gpu_idle_* families only: a sidecar's pod
  std::string name_space;  // likewise
  std::string host_name;   // label Hostname of the DCGM_FI_* families
  std::string version;
  std::string revision;  // the commit; empty: not known
  // False for textfiles: node_exporter, which reads them, has its own process_* series and refuses a file
  // with duplicates.
  bool own_process_metrics = true;
};

// Pure functions of one cycle: same input, same bytes. They have no other input and no state.
std::string write_text(const Cycle& cycle, const ExposeOptions& options);         // text format 0.0.4
std::string write_openmetrics(const Cycle& cycle, const ExposeOptions& options);  // OpenMetrics 1.0
std::string write_json(const Cycle& cycle, const ExposeOptions& options);         // /api/v1/snapshot

std::string write_history(const History& history);  // /api/v1/history

// The device view of the collectors dcgm and dcgm-modern; empty when neither is on.
std::string write_gpu_text(const Cycle& cycle, const ExposeOptions& options);
std::string write_gpu_openmetrics(const Cycle& cycle, const ExposeOptions& options);

// A prefix that is no metric name, or that would make two families with one name ("process" does),
// is refused: Prometheus would drop the scrape.
Status check_process_prefix(const std::string& prefix);

}  // namespace gpuledger::expose
