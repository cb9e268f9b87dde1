// SPDX-License-Identifier: Apache-2.0
#include "app/bill/co2e.h"

#include <algorithm>

#include "app/bill/amounts.h"

namespace gpuledger::app {
namespace {

constexpr double kMostGrams = 1e6;  // per kWh; the dirtiest grids have some 1000

Error wrong(std::chrono::sys_seconds at, const std::string& what) {
  return {Code::kMalformed, "--co2e-series: it " + what + " at " + time_text(at)};
}

}  // namespace

Status BillCo2e::read(const BillSpan& step) {
  constexpr int64_t kLooks = 60;
  if (query_.co2e_grams_per_kwh) everywhere_ = *query_.co2e_grams_per_kwh;
  if (query_.co2e_series.empty()) return ok_status();
  const int64_t length = (step.end - step.begin).count();
  const std::chrono::sys_seconds at = step.end;
  const std::string mean =
      "avg_over_time((" + query_.co2e_series + ")" + looks_range(length, std::max<int64_t>(1, length / kLooks)) + ")";
  GL_TRY(answer, (query_.ask_deduplicated ? query_.ask_deduplicated : ask_)(mean, at));
  by_cluster_.clear();
  for (const BillSeries& series : answer) {
    const double value = series.samples.back().value;
    if (!(value >= 0 && value <= kMostGrams)) return wrong(at, "is not a number of grams");
    if (!by_cluster_.emplace(series.label("cluster"), value).second) {
      return wrong(at, "has several series; make it one, or one per cluster, as with avg() or avg by (cluster)");
    }
  }
  if (by_cluster_.empty()) return wrong(at, "has no value");
  if (const auto one = by_cluster_.find(""); one != by_cluster_.end()) everywhere_ = one->second;
  return ok_status();
}

Status BillCo2e::check(const BillNode& node, std::chrono::sys_seconds at) const {
  const bool answered = by_cluster_.empty() || by_cluster_.contains("") || by_cluster_.contains(node.cluster);
  return answered ? ok_status() : Status(wrong(at, "has no value for the cluster \"" + node.cluster + "\""));
}

double BillCo2e::grams_per_microjoule(const BillNode& node) const {
  const auto found = by_cluster_.find(node.cluster);
  return (found != by_cluster_.end() ? found->second : everywhere_) / kMicrojoulesPerKwh;
}

}  // namespace gpuledger::app
