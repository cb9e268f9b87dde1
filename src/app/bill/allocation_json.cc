// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocation_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "app/bill/allocation_filter.h"
#include "app/bill/amounts.h"
#include "app/bill/line_words.h"
#include "base/units.h"

namespace gpuledger::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kIdle = "__idle__";
constexpr const char* kUnallocated = "__unallocated__";

// Lines under one name.
struct Allocation {
  std::optional<std::map<std::string, std::string>> properties;  // those that all lines have
  int64_t alone = 0, shared = 0, spread = 0;                     // millijoules
  std::optional<double> squared_error, work_hours, allocated_hours, unused_hours, held_hours;
  double energy_cost = 0, hour_cost = 0, co2e_grams = 0;

  void add(const BillLine& line);
};

void add_to(std::optional<double>& sum, const std::optional<double>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

void Allocation::add(const BillLine& line) {
  if (!properties) {
    properties = line.properties;
  } else {
    std::erase_if(*properties, [&](const auto& property) {
      const auto found = line.properties.find(property.first);
      return found == line.properties.end() || found->second != property.second;
    });
  }
  alone += line.alone_millijoules;
  shared += line.shared_millijoules;
  spread += line.spread_millijoules;
  // As in a statement: the errors of different owners are independent.
  if (const auto error = line.standard_error_joules) add_to(squared_error, *error * *error);
  add_to(work_hours, line.gpu_hours);
  add_to(allocated_hours, line.allocated_gpu_hours);
  add_to(unused_hours, line.unused_gpu_hours);
  add_to(held_hours, held_gpu_hours(line));
  energy_cost += line.energy_cost;
  hour_cost += line.gpu_hour_cost;
  co2e_grams += line.co2e_grams;
}

// Several groups are joined as there: "research/vision".
std::string name_of(const Statement& statement, const BillLine& line, const AllocationShape& shape) {
  if (line.kind == LineKind::kNobody) return kIdle;
  if (shape.in_one) return "all";
  if (line.kind != LineKind::kOwner) return kUnallocated;
  if (statement.by.find(',') == std::string::npos) return line.name;
  constexpr std::string_view kBetween = " / ";
  std::string name;
  size_t begin = 0;
  for (size_t end; (end = line.name.find(kBetween, begin)) != std::string::npos; begin = end + kBetween.size()) {
    name.append(line.name, begin, end - begin).append("/");
  }
  return name.append(line.name, begin);
}

Json properties_json(const Allocation& allocation) {
  constexpr std::string_view kLabel = "label_";
  Json properties = Json::object();
  Json labels = Json::object();
  if (allocation.properties) {
    for (const auto& [name, value] : *allocation.properties) {
      if (name.starts_with(kLabel))
        labels[name.substr(kLabel.size())] = value;
      else
        properties[name] = value;
    }
  }
  properties["labels"] = std::move(labels);
  return properties;
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json window_json(const BillSpan& span) {
  return {{"start", utc_text(span.begin)}, {"end", utc_text(span.end)}};
}

Json allocation_object(const std::string& name, const Allocation& allocation, const Statement& statement) {
  const std::string start = utc_text(statement.span.begin), end = utc_text(statement.span.end);
  const double hours = hours_of(statement.span.end - statement.span.begin);
  const auto average = [&](const std::optional<double>& gpu_hours) {
    return gpu_hours && hours > 0 ? Json(*gpu_hours / hours) : Json(nullptr);
  };
  const auto kwh = [](int64_t millijoules) { return to_kwh(millijoules); };
  Json one;
  one["name"] = name;
  one["properties"] = properties_json(allocation);
  one["window"] = window_json(statement.span);
  one["start"] = start;
  one["end"] = end;
  one["minutes"] = hours * 60;
  // This bill has no other cost. Amounts of CPU, memory, disks and network are not known, so they are left out.
  one["cpuCost"] = 0;
  one["gpuCount"] = average(allocation.held_hours);
  one["gpuRequestAverage"] = average(allocation.allocated_hours);
  one["gpuUsageAverage"] = average(allocation.work_hours);
  one["gpuHours"] = optional_json(allocation.held_hours);
  const auto cost = [&](double value) { return has_cost(statement) ? Json(value) : Json(nullptr); };
  one["gpuCost"] = cost(allocation.energy_cost + allocation.hour_cost);
  const double charged = kwh(allocation.alone + allocation.shared + allocation.spread);
  // With a price list the mean.
  const double of_a_kwh = statement.prices.rows.empty() ? statement.prices.pue * statement.prices.per_kwh
                          : charged > 0                 ? allocation.energy_cost / charged
                                                        : 0;
  one["gpuCostIdle"] = cost(kwh(allocation.spread) * of_a_kwh);
  std::optional<double> efficiency;
  if (allocation.allocated_hours && allocation.unused_hours && *allocation.allocated_hours > 0)
    efficiency = 1 - *allocation.unused_hours / *allocation.allocated_hours;
  one["gpuEfficiency"] = optional_json(efficiency);
  for (const char* other : {"cpuCostIdle", "networkCost", "loadBalancerCost", "pvCost", "ramCost", "ramCostIdle",
                            "sharedCost", "externalCost"})
    one[other] = 0;
  one["totalCost"] = cost(allocation.energy_cost + allocation.hour_cost);
  one["totalEfficiency"] = optional_json(efficiency);
  one["currency"] = statement.prices.currency;
  one["gpuEnergyKwh"] = kwh(allocation.alone + allocation.shared + allocation.spread);
  one["gpuEnergyAloneKwh"] = kwh(allocation.alone);
  one["gpuEnergySharedKwh"] = kwh(allocation.shared);
  one["gpuEnergyIdleKwh"] = kwh(allocation.spread);
  if (allocation.squared_error) one["gpuEnergyStandardErrorKwh"] = std::sqrt(*allocation.squared_error) / kJoulesPerKwh;
  if (allocation.work_hours) one["gpuWorkHours"] = *allocation.work_hours;
  if (allocation.allocated_hours) one["gpuAllocatedHours"] = *allocation.allocated_hours;
  if (statement.has_co2e) one["co2eGrams"] = allocation.co2e_grams;
  return one;
}

// The fields of OpenCost's summary that are known, and the energy.
Json summary_of(const Json& allocation) {
  Json summary;
  for (const char* field :
       {"name", "start", "end", "cpuCost", "cpuCostIdle", "gpuRequestAverage", "gpuUsageAverage", "gpuCost",
        "gpuCostIdle", "networkCost", "loadBalancerCost", "pvCost", "ramCost", "ramCostIdle", "sharedCost",
        "externalCost", "totalEfficiency", "totalCost", "gpuEnergyKwh"})
    summary[field] = allocation.at(field);
  return summary;
}

Json set_json(const Statement& statement, const AllocationShape& shape) {
  std::map<std::string, Allocation> allocations;
  for (const BillLine& line : statement.lines) {
    if (line.kind == LineKind::kOwner || line.name != kLeftOut) allocations[name_of(statement, line, shape)].add(line);
  }
  Json set = Json::object();
  for (const auto& [name, allocation] : allocations) {
    // Shared idle cost is in the others; what could not be shared stays.
    const bool shared_out = allocation.alone + allocation.shared + allocation.spread == 0;
    if (name == kIdle && (!shape.include_idle || (statement.spread != Spread::kKeep && shared_out))) continue;
    set[name] = allocation_object(name, allocation, statement);
    if (shape.summary) set[name] = summary_of(set[name]);
  }
  if (shape.summary) return {{"allocations", std::move(set)}, {"window", window_json(statement.span)}};
  return set;
}

Json sets_json(const std::vector<Statement>& statements, const AllocationShape& shape) {
  Json sets = Json::array();
  for (const Statement& statement : statements) sets.push_back(set_json(statement, shape));
  if (!shape.summary) return sets;
  if (statements.empty()) return {{"step", 0}, {"sets", sets}, {"window", {{"start", nullptr}, {"end", nullptr}}}};
  const BillSpan first = statements.front().span;
  const std::chrono::nanoseconds step = first.end - first.begin;  // as Go writes durations
  return {{"step", step.count()},
          {"sets", std::move(sets)},
          {"window", window_json({first.begin, statements.back().span.end})}};
}

// Of the first statement that is not complete.
std::string missing_in(const std::vector<Statement>& statements) {
  for (const Statement& statement : statements) {
    if (statement.complete()) continue;
    std::string text =
        fmt::format("INCOMPLETE from {} to {}: ", utc_text(statement.span.begin), utc_text(statement.span.end));
    if (statement.gaps.empty()) return text + "the lines do not add up to the meter";
    const BillGap& gap = statement.gaps.front();
    text += fmt::format("{} from {} to {}: {}", gap.node, utc_text(gap.span.begin), utc_text(gap.span.end), gap.why);
    if (statement.gaps.size() > 1) text += fmt::format(", and {} more", statement.gaps.size() - 1);
    return text;
  }
  return {};
}

// Properties that were asked for and are in no set. One set may lack a model because its node was off.
std::string unmet_in_all(const std::vector<Statement>& statements, const AllocationShape& shape) {
  std::optional<std::map<std::string, std::string>> in_all;
  for (const Statement& statement : statements) {
    if (statement.lines.empty()) continue;
    if (!in_all) in_all = statement.unmet;
    std::erase_if(*in_all, [&](const auto& one) { return !statement.unmet.contains(one.first); });
  }
  std::string text;
  if (!in_all) return text;
  for (const auto& [asked, why] : *in_all) {
    if (shape.in_one && asked.starts_with("aggregate=")) continue;  // nobody asked for the groups
    text += (text.empty() ? "" : "; ") + why;
  }
  return text;
}

// Once each: those of a node may be in every step's statement.
Json notes_of(const std::vector<Statement>& statements) {
  constexpr size_t kMost = 100;
  std::set<std::string_view> known;
  Json notes = Json::array();
  for (const Statement& statement : statements) {
    for (const std::string& remark : statement.remarks) {
      if (known.insert(remark).second && known.size() <= kMost) notes.push_back(remark);
    }
  }
  if (known.size() > kMost) notes.push_back(fmt::format("and {} more", known.size() - kMost));
  return notes;
}

// Names may be any bytes.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string allocation_json(const std::vector<Statement>& statements, const AllocationShape& shape) {
  Json answer;
  answer["code"] = 200;
  answer["data"] = sets_json(statements, shape);
  std::string warning = missing_in(statements);
  if (const std::string text = unmet_in_all(statements, shape); !text.empty())
    warning += (warning.empty() ? "" : "; ") + text;
  if (!warning.empty()) answer["warning"] = warning;
  if (Json notes = notes_of(statements); !notes.empty()) answer["notes"] = std::move(notes);
  return text_of(answer);
}

std::string names_json(const std::vector<Statement>& statements, std::string_view search, size_t most) {
  const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  std::set<std::string> names;
  for (const Statement& statement : statements) {
    for (const BillLine& line : statement.lines) {
      if (line.kind != LineKind::kOwner) continue;
      const auto pod = line.properties.find("pod");  // a filter has its name alone
      const std::string& name = statement.by == "pod" && pod != line.properties.end() ? pod->second : line.name;
      if (std::search(name.begin(), name.end(), search.begin(), search.end(), same) != name.end()) names.insert(name);
    }
  }
  Json list = Json::array();
  for (const std::string& name : names) {
    if (list.size() < most) list.push_back(name);
  }
  return text_of(Json{{"code", 200}, {"data", {{"data", std::move(list)}}}});
}

std::string allocation_error(unsigned code, std::string_view message) {
  return text_of(Json{{"code", code}, {"message", message}});
}

}  // namespace gpuledger::app
