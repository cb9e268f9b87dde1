#pragma once

#include <span>
#include <string>
#include <string_view>

#include "expose/text_writer.h"
#include "expose/view.h"

namespace gpuledger::expose {

struct Family {
  std::string_view collector;
  std::string_view name;  // one that begins with '_' gets --metric-prefix in front
  MetricType type;
  std::string_view unit;    // the end of the name, or empty
  std::string_view labels;  // in the order they are printed, separated by blanks
  std::string_view help;
  void (*emit)(const View& view, TextWriter& out);
};

// THE table of metrics, in the order of the exposition. docs/metrics.md is made from it.
std::span<const Family> catalog();

std::string full_name(const Family& family, std::string_view process_prefix);

}  // namespace gpuledger::expose
