// SPDX-License-Identifier: Apache-2.0
#include "expose/catalog.h"
#include "expose/families.h"
#include "expose/series_limit.h"
#include "expose/text_writer.h"

// /metrics: the families of the catalog, one after the other.
namespace gpuledger::expose {
namespace {

bool is_shown(const Family& family, const ExposeOptions& options) {
  if (!options.collectors.contains(std::string(family.collector))) return false;
  return options.own_process_metrics || !family.name.starts_with("process_");
}

SeriesCount count_series(const View& view) {
  SeriesCount count;
  CountingSink sink;
  for (const Family& family : catalog()) {
    if (!is_shown(family, view.options)) continue;
    const size_t before = sink.samples();
    family.write(view, sink);
    count[family.collector] += sink.samples() - before;
  }
  return count;
}

// Collectors with series per process or owner; the others have no series_left_out.
constexpr std::string_view kGrowing[] = {"process",     "process-native", "process-info", "idle",
                                         "processlist", "device",         "pod"};

std::string write_metrics(const Cycle& cycle, const ExposeOptions& options, Format format) {
  View view(cycle, options);
  limit(view);
  TextWriter out(format, expected_bytes(view));
  write_families(view, out);
  return out.take();
}

}  // namespace

void limit(View& view) {
  for (const std::string_view collector : kGrowing) {
    if (view.options.collectors.contains(std::string(collector))) view.left_out[collector] = 0;
  }
  if (view.options.max_series == 0 || most_series(view) <= view.options.max_series) return;
  const SeriesCount all = count_series(view);
  if (sum_of(all) <= view.options.max_series) return;
  keep_biggest(view, count_series);
  const SeriesCount kept = count_series(view);
  for (auto& [collector, left_out] : view.left_out) {
    const auto before = all.find(collector);
    const auto after = kept.find(collector);
    const size_t had = before == all.end() ? 0 : before->second;
    const size_t has = after == kept.end() ? 0 : after->second;
    left_out = had > has ? had - has : 0;
  }
}

void write_families(const View& view, FamilySink& sink) {
  for (const Family& family : catalog()) {
    if (!is_shown(family, view.options)) continue;
    sink.begin_family({full_name(family, view.options.process_prefix), family.type, family.unit, family.help});
    family.write(view, sink);
  }
}

std::string write_text(const Cycle& cycle, const ExposeOptions& options) {
  return write_metrics(cycle, options, Format::kText);
}

std::string write_openmetrics(const Cycle& cycle, const ExposeOptions& options) {
  return write_metrics(cycle, options, Format::kOpenMetrics);
}

}  // namespace gpuledger::expose
