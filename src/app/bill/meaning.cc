// SPDX-License-Identifier: Apache-2.0
#include "app/bill/meaning.h"

#include <map>

namespace gpuledger::app {
namespace {

using What = SeriesMeaning::What;

constexpr std::pair<std::string_view, What> kOwnerSuffixes[] = {{"_energy_joules_total", What::kEnergy},
                                                                {"_gpu_seconds_total", What::kGpuTime},
                                                                {"_energy_standard_error_joules", What::kError}};
constexpr std::pair<std::string_view, What> kOthers[] = {
    {kMeterName, What::kMeter},
    {kBooksOpenedName, What::kBooksOpened},
    {"gpu_ledger_books_run", What::kBooksRun},
    {"gpu_ledger_device_unattributed_joules_total", What::kUnattributed},
    {"gpu_ledger_closed_energy_joules", What::kClosedEnergy},
    {"gpu_ledger_closed_gpu_seconds", What::kClosedGpuTime},
    {"gpu_ledger_device_info", What::kDeviceInfo},
    {"gpu_ledger_pod_info", What::kPodInfo},
    {"gpu_ledger_snapshot_timestamp_seconds", What::kSnapshotTime},
    {"gpu_ledger_node_boot_timestamp_seconds", What::kBootTime},
};
constexpr std::string_view kStartTime = "process_start_time_seconds";

const std::map<std::string, SeriesMeaning, std::less<>>& meanings() {
  static const auto all = [] {
    std::map<std::string, SeriesMeaning, std::less<>> table;
    for (const auto& [name, what] : kOthers) table.emplace(name, SeriesMeaning{what});
    table.emplace(kStartTime, SeriesMeaning{What::kStartTime});
    for (const OwnerKindRow& row : kOwnerKinds) {
      const std::string start = "gpu_ledger_" + std::string(row.metric);
      for (const auto& [suffix, what] : kOwnerSuffixes)
        table.emplace(start + std::string(suffix), SeriesMeaning{what, &row});
      if (row.of_user) table.emplace(start + "_info", SeriesMeaning{What::kJobInfo, &row});
    }
    return table;
  }();
  return all;
}

template <typename Wanted>
std::vector<std::string> names_of(Wanted wanted) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : meanings()) {
    if (wanted(meaning.what)) names.push_back(name);
  }
  return names;
}

}  // namespace

const SeriesMeaning* meaning_of(std::string_view name) {
  const auto found = meanings().find(name);
  return found == meanings().end() ? nullptr : &found->second;
}

std::vector<std::string> reading_names() {
  return names_of([](What what) { return what != What::kStartTime; });
}

std::vector<std::string> node_names() {
  return names_of([](What) { return true; });
}

std::string select_names(std::span<const std::string> names, const std::string& matchers) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : "|") + name;
  return "{__name__=~\"" + all + "\"" + (matchers.empty() ? "" : "," + matchers) + "}";
}

std::string info_selector(const std::string& matchers) {
  return select_names(names_of([](What what) { return what == What::kPodInfo || what == What::kJobInfo; }), matchers);
}

std::string start_selector(const std::string& matchers) {
  // These three are labels of targets: a meter has no others in common with them for sure. Of two servers that scrape
  // one exporter both have both.
  const std::string in_braces = "{" + matchers + "}";
  return std::string(kStartTime) + in_braces + " and on (cluster, job, instance) " + kMeterName + in_braces;
}

}  // namespace gpuledger::app
