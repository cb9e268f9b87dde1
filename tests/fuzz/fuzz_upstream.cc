// SPDX-License-Identifier: Apache-2.0
// What must hold of parse_upstream whatever another exporter, or somebody in its place, says.

#include <algorithm>
#include <cstdint>
#include <string>

#include "expose/escape.h"
#include "expose/upstream_parse.h"
#include "expose/upstream_split.h"
#include "invariant.h"

namespace {

using gpuledger::fuzz::all_in;
using gpuledger::fuzz::require;
using namespace gpuledger::expose;

size_t count_series(const UpstreamText& text) {
  size_t count = 0;
  for (const UpstreamFamily& family : text.families) count += family.series.size();
  return count;
}

// Six decimals at the most, as split_decimal takes and writes them.
uint64_t millionths(const std::string& text) {
  const size_t point = std::min(text.find('.'), text.size());
  std::string decimals = point < text.size() ? text.substr(point + 1) : "";
  while (decimals.size() > 6 && decimals.back() == '0') decimals.pop_back();
  require(decimals.size() <= 6, "no more than six decimals");
  decimals.resize(6, '0');
  return std::stoull(text.substr(0, point)) * 1'000'000 + std::stoull(decimals);
}

// A reading that several pods share is split between them.
void check_split(const std::string& value) {
  if (const auto parts = split_decimal(value, {1, 0, 3})) {
    uint64_t sum = 0;
    for (const std::string& part : *parts) sum += millionths(part);
    require(sum == millionths(value), "the parts add up to the number");
  }
  if (const auto parts = split_whole(value, {1, 0, 3})) {
    uint64_t sum = std::stoull(parts->rest);
    for (const std::string& part : parts->parts) sum += std::stoull(part);
    require(sum == std::stoull(value), "the whole parts add up to the number");
  }
}

std::string write_again(const UpstreamText& text) {
  std::string out;
  for (const UpstreamFamily& family : text.families) {
    require(is_metric_name(family.name), "a name is a name");
    require(family.type == "counter" || family.type == "gauge" || family.type == "untyped", "a type of the format");
    require(!family.series.empty(), "no family without series");
    out += "# TYPE " + family.name + " " + family.type + "\n";
    for (const UpstreamSeries& series : family.series) {
      out += family.name + "{";
      for (const UpstreamLabel& label : series.labels) {
        require(!label.value.empty(), "no empty label");
        require(is_metric_name(label.name) && !label.name.starts_with("__"), "a label's name");
        out += label.name + "=\"";
        append_label_value(out, label.value);
        out += "\",";
      }
      require(!series.value.empty() && all_in(series.value, "0123456789.eE+-"), "a number is a number");
      check_split(series.value);
      out += "} " + series.value + "\n";
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const auto text = parse_upstream({reinterpret_cast<const char*>(bytes), size});
  if (!text) return 0;
  require(size > 0 && bytes[size - 1] == '\n', "a text that was cut is refused");
  // What was taken can be served: it reads as the same again, without a fault. A tab in a label becomes another sign,
  // which may make two series one.
  const auto again = parse_upstream(write_again(*text));
  require(again.ok(), "what was taken is taken again");
  for (size_t i = 0; i < again->faults.size(); ++i) {
    require(again->faults[i] == 0 || static_cast<LineFault>(i) == LineFault::kDuplicate, "no fault in what was taken");
  }
  const uint64_t merged = again->faults[static_cast<size_t>(LineFault::kDuplicate)];
  require(count_series(*again) + merged == count_series(*text), "every series is there again");
  return 0;
}
