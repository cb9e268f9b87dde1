// SPDX-License-Identifier: Apache-2.0
#include "expose/catalog.h"

#include <iterator>
#include <set>

#include "expose/collectors/collectors.h"
#include "expose/escape.h"
#include "expose/expose.h"

namespace gpuledger::expose {
namespace {

constexpr std::string_view kUnits[] = {"joules", "seconds", "bytes", "watts", "celsius", "hertz", "ratio", "percent"};

std::string_view unit_of(std::string_view name) {
  if (name.ends_with("_total")) name.remove_suffix(std::string_view("_total").size());
  for (const std::string_view unit : kUnits) {
    if (name.ends_with(unit) && name.substr(0, name.size() - unit.size()).ends_with('_')) return unit;
  }
  return {};
}

std::vector<Family> make_catalog() {
  std::vector<Family> all;
  for (auto* families :
       {process_families, process_native_families, process_info_families, idle_families, processlist_families,
        device_families, device_detail_families, pod_families, driver_call_families, self_families}) {
    std::vector<Family> more = families();
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return all;
}

}  // namespace

Family CatalogBuilder::head_of(std::string_view prefix, std::string_view name, MetricType type, std::string_view help,
                               std::string_view subject) const {
  Family family;
  family.collector = collector_;
  family.name = std::string(prefix).append(name);
  family.type = type;
  family.unit = unit_of(name);
  family.help = help;
  if (const size_t gap = family.help.find("{}"); gap != std::string::npos) family.help.replace(gap, 2, subject);
  return family;
}

std::span<const Family> catalog() {
  static const std::vector<Family> all = make_catalog();
  return all;
}

std::string full_name(const Family& family, std::string_view process_prefix) {
  return family.name.starts_with('_') ? std::string(process_prefix).append(family.name) : family.name;
}

Status check_process_prefix(const std::string& prefix) {
  if (!is_metric_name(prefix)) return Error{Code::kMalformed, "\"" + prefix + "\" is no metric name"};
  std::set<std::string> names;
  for (const Family& family : catalog()) {
    const std::string name = full_name(family, prefix);
    if (!names.insert(name).second) {
      return Error{Code::kMalformed, "with the prefix \"" + prefix + "\" two metrics would be called " + name};
    }
  }
  return ok_status();
}

}  // namespace gpuledger::expose
