// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocations.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuledger::app {
namespace {

constexpr const char* kAllocation = "gpu_ledger_allocation_info";
constexpr const char* kAllocationIdle = "gpu_ledger_allocation_idle_seconds";
constexpr int kIdleAfterSeconds = 60;

}  // namespace

Status read_allocations(const BillAsk& ask, const BillQuery& query, const BillSpan& step, BillBooks& books) {
  const int64_t length = (step.end - step.begin).count();
  const int64_t resolution = length >= 600 ? 60 : std::max<int64_t>(1, length / 10);
  // A millisecond less, or servers that count both ends would see one look too many.
  const std::string range = fmt::format("[{}ms:{}s]", length * 1000 - 1, resolution);
  const double hours = static_cast<double>(resolution) / 3600;
  GL_TRY(given, ask(fmt::format("sum_over_time({}{})", select_series(query, kAllocation), range), step.end));
  if (given.empty()) return ok_status();
  GL_TRY(idle, ask(fmt::format("sum_over_time(({} >= bool {}){})", select_series(query, kAllocationIdle),
                               kIdleAfterSeconds, range),
                   step.end));
  // A copy of a series by another server counts once.
  std::map<std::pair<BillBooks::AllocationKey, std::string>, double> looks, idle_looks;
  const auto count = [&](const std::vector<BillSeries>& answer, auto& out) -> Status {
    for (const BillSeries& series : answer) {
      const double seen = series.samples.back().value;
      if (!(seen >= 0) || seen > static_cast<double>(length + 1)) {
        return Error{Code::kMalformed, "an allocation was seen " + std::to_string(seen) + " times in " +
                                           std::to_string(length) + " s: " + series.text()};
      }
      std::string what;
      for (const char* const label : {"mig_uuid", "container", "resource", "replica"}) {
        if (books.facts.target_labels.contains(label)) continue;  // a server's replica, not the GPU's
        what.append(series.own_label(label)).append("\n");
      }
      const BillBooks::AllocationKey key{node_of(series), allocated_pod(series, books.facts),
                                         std::string(series.own_label("uuid"))};
      double& value = out[{key, what}];
      value = std::max(value, seen);
    }
    return ok_status();
  };
  GL_TRY_STATUS(count(given, looks));
  GL_TRY_STATUS(count(idle, idle_looks));
  for (const auto& [key, value] : looks) books.allocations[key.first].hours += value * hours;
  for (const auto& [key, value] : idle_looks) {
    const auto allocation = books.allocations.find(key.first);
    if (allocation == books.allocations.end()) continue;
    allocation->second.unused_hours += value * hours;
    allocation->second.idleness_known = true;
  }
  return ok_status();
}

}  // namespace gpuledger::app
