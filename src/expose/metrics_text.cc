// SPDX-License-Identifier: Apache-2.0
#include "expose/families.h"
#include "expose/series_limit.h"
#include "expose/text_writer.h"

// /metrics: the families of the catalog, one after the other.
namespace gpuledger::expose {
namespace {

constexpr size_t kHeads = 64 * 1024;  // HELP and TYPE of all families

bool is_shown(const Family& family, const ExposeOptions& options) {
  if (!options.collectors.contains(std::string(family.collector))) return false;
  return options.own_process_metrics || !family.name.starts_with("process_");
}

struct SeriesCount {
  std::map<std::string_view, size_t> by_collector;
  size_t all = 0;
  size_t bytes = kHeads;
};

SeriesCount count_series(const View& view, std::span<const Family* const> shown) {
  SeriesCount count;
  CountingSink sink;
  for (const Family* family : shown) {
    const size_t before = sink.samples();
    family->write(view, sink);
    count.by_collector[family->collector] += sink.samples() - before;
  }
  count.all = sink.samples();
  count.bytes += sink.bytes();
  return count;
}

std::string write_metrics(const Cycle& cycle, const ExposeOptions& options, Format format) {
  View view(cycle, options);
  TextWriter out(format, limit(view));
  write_families(view, out);
  return out.take();
}

}  // namespace

size_t limit(View& view, std::span<const Family> families) {
  std::vector<const Family*> shown;
  for (const Family& family : families) {
    if (!is_shown(family, view.options)) continue;
    shown.push_back(&family);
    if (family.can_be_left_out) view.left_out[family.collector] = 0;
  }
  const SeriesCount all = count_series(view, shown);
  if (view.options.max_series == 0 || all.all <= view.options.max_series) return all.bytes;
  keep_biggest(view, shown);
  const SeriesCount kept = count_series(view, shown);
  for (auto& [collector, left_out] : view.left_out) {
    const size_t had = all.by_collector.at(collector);
    left_out = had - std::min(had, kept.by_collector.at(collector));  // closed accounts may be new
  }
  return kept.bytes;
}

void write_families(const View& view, FamilySink& sink, std::span<const Family> families) {
  for (const Family& family : families) {
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
