// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/bill/prices.h"

namespace gpuledger::app {

// Half open: from `begin` up to, not including, `end`. UTC.
struct BillSpan {
  std::chrono::sys_seconds begin;
  std::chrono::sys_seconds end;
};

// How long before now a bill ends at the latest: the newest scrapes may still be on their way to the server.
inline constexpr std::chrono::seconds kOnTheWay{30};

// What a line is for. Only kOwner lines carry a value of what the bill is grouped by.
enum class LineKind {
  kOwner,    // a team, namespace, Slurm account, user or pod
  kNoGroup,  // an owner without that label, or of another kind: "container: triton", "no team"
  kUnknown,  // a process that exited before its owner could be read
  kNobody,   // the GPU's own: idle, unseen, exporter_down ...; `name` is the reason
};

// Of inference servers, from their counters. Whole numbers in a line, so that lines add up.
struct BillTokens {
  double prompt = 0;
  double generated = 0;
  double all() const { return prompt + generated; }
};

// Energy is in millijoules, so that sums are exact. What is not known is empty.
struct BillLine {
  LineKind kind = LineKind::kOwner;
  std::string name;
  std::map<std::string, std::string> properties;  // cluster, namespace, pod, label_team ...: those that all of it share
  int64_t alone_millijoules = 0;                  // measured: no other process was on the GPU
  int64_t shared_millijoules = 0;                 // estimated
  std::optional<double> standard_error_joules;    // of the shared part; empty if it is 0
  std::optional<double> gpu_hours;                // of work
  std::optional<double> allocated_gpu_hours;      // given by Kubernetes or Slurm, used or not
  std::optional<double> unused_gpu_hours;         // of these, without work
  // Its part of the unattributed energy, if that is spread; the nobody lines then have the same with a minus sign, so
  // the column adds up to 0.
  int64_t spread_millijoules = 0;
  double energy_cost = 0;  // of alone + shared + spread
  // By model: each pod's and job's allocated hours, and the hours of work of owners without one. No hour is in two
  // lines.
  std::map<std::string, double> held_gpu_hours;
  std::map<std::string, double> gpu_hour_costs;  // of those of models with a price
  double gpu_hour_cost = 0;                      // their sum
  double building_kwh = 0;                       // the charged energy x PUE
  double co2e_grams = 0;
  std::optional<BillTokens> tokens;  // if they were asked for and there are some

  int64_t own_millijoules() const { return alone_millijoules + shared_millijoules; }
  int64_t charged_millijoules() const { return own_millijoules() + spread_millijoules; }
  double cost() const { return energy_cost + gpu_hour_cost; }
};

// A time of one node for which the server has no usable reading.
struct BillGap {
  std::string node;
  BillSpan span;
  std::string why;
};

enum class Spread { kKeep, kByUse, kByAllocation };

// A bill: a format needs nothing else. Its lines add up to the meter to the millijoule, or `complete()` is
// false.
struct Statement {
  BillSpan span;
  std::optional<std::chrono::sys_seconds> over_at;  // a month, say, that was not over when this was made
  std::string by;                                   // as asked for: namespace, label:team, slurm_account, user, pod ...
  std::string server;                               // without a password
  std::string site;                                 // whose bill this is: a cluster or a site; empty if it has no name
  std::string generated_by;
  std::chrono::sys_seconds generated_at;
  Spread spread = Spread::kKeep;
  BillPrices prices;
  bool has_co2e = false;
  std::vector<BillLine> lines;  // owners by energy, the most first; then the other kinds in the order of LineKind
  int64_t meter_millijoules = 0;
  double meter_gpu_hours = 0;  // GPUs times hours for which there are readings
  std::vector<BillGap> gaps;
  std::vector<std::string> remarks;  // what a reader should know and what makes no hour missing; a line each
  // What was asked for and is not there, such as a model, and a line about it. Empty if that is an error.
  std::map<std::string, std::string> unmet;

  int64_t sum_millijoules() const {
    int64_t sum = 0;
    for (const BillLine& line : lines) sum += line.charged_millijoules();
    return sum;
  }
  // Of work, by owners whose time is known. Empty: by nobody.
  std::optional<double> work_gpu_hours() const {
    std::optional<double> sum;
    for (const BillLine& line : lines) {
      if (line.gpu_hours) sum = sum.value_or(0) + *line.gpu_hours;
    }
    return sum;
  }
  // Empty: no line has any.
  std::optional<BillTokens> tokens() const {
    std::optional<BillTokens> sum;
    for (const BillLine& line : lines) {
      if (!line.tokens) continue;
      if (!sum) sum.emplace();
      sum->prompt += line.tokens->prompt;
      sum->generated += line.tokens->generated;
    }
    return sum;
  }
  // Of the time that it counts.
  bool complete() const { return gaps.empty() && sum_millijoules() == meter_millijoules; }
  // Nothing will be added to it.
  bool is_final() const { return complete() && !over_at; }
};

}  // namespace gpuledger::app
