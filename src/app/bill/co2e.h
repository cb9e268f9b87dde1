// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "app/bill/bill_query.h"
#include "app/bill/reading.h"

namespace gpuledger::app {

// How much CO2e a kWh costs in a step of the span: a constant, or the mean of what a series says for all or for each
// cluster.
class BillCo2e {
 public:
  BillCo2e(const BillAsk& ask, const BillQuery& query) : ask_(ask), query_(query) {}

  bool known() const { return query_.co2e_grams_per_kwh || !query_.co2e_series.empty(); }
  Status read(const BillSpan& step);
  // An error if the series speaks of clusters and not of this one.
  Status check(const BillNode& node, std::chrono::sys_seconds at) const;
  double grams_per_microjoule(const BillNode& node) const;

 private:
  const BillAsk& ask_;
  const BillQuery& query_;
  std::map<std::string, double> by_cluster_;  // grams per kWh
  double everywhere_ = 0;
};

}  // namespace gpuledger::app
