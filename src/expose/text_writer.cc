// SPDX-License-Identifier: Apache-2.0
#include "expose/text_writer.h"

#include <utility>

#include "expose/escape.h"
#include "expose/histogram_samples.h"

namespace gpuledger::expose {

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter: return "counter";
    case MetricType::kGauge: return "gauge";
    case MetricType::kHistogram: return "histogram";
    case MetricType::kUntyped: return "untyped";
  }
  return "gauge";
}

void TextWriter::begin_family(FamilyHead head) {
  head_ = std::move(head);
  header_due_ = true;
}

void TextWriter::write_header() {
  header_due_ = false;
  // OpenMetrics names a counter's family without the suffix of its samples. DCGM's counters have no suffix and keep
  // their names: in OpenMetrics their type is unknown.
  std::string_view family = head_.name;
  std::string_view type = type_name(head_.type);
  if (format_ == Format::kOpenMetrics && head_.type == MetricType::kUntyped) type = "unknown";
  if (format_ == Format::kOpenMetrics && head_.type == MetricType::kCounter) {
    if (family.ends_with("_total")) {
      family.remove_suffix(std::string_view("_total").size());
    } else {
      type = "unknown";
    }
  }
  out_.append("# HELP ").append(family).append(" ");
  append_help(out_, head_.help, format_ == Format::kOpenMetrics);
  out_.append("\n# TYPE ").append(family).append(" ").append(type).append("\n");
  // The unit must be the end of the name there.
  if (format_ == Format::kOpenMetrics && !head_.unit.empty() && family.ends_with(head_.unit)) {
    out_.append("# UNIT ").append(family).append(" ").append(head_.unit).append("\n");
  }
}

void TextWriter::begin_sample(std::string_view suffix, std::string_view labels, std::string_view extra) {
  if (header_due_) write_header();
  out_.append(head_.name).append(suffix);
  if (!labels.empty() || !extra.empty()) {
    out_.append("{").append(labels);
    if (!labels.empty() && !extra.empty()) out_ += ',';
    out_.append(extra).append("}");
  }
  out_ += ' ';
}

void TextWriter::write(std::string_view labels, const Value& value, std::string_view extra) {
  if (const auto* histogram = std::get_if<const DurationHistogram*>(&value))
    return write_histogram(labels, **histogram);
  begin_sample("", labels, extra);
  std::visit(
      [&](const auto& number) {
        if constexpr (requires { append_number(out_, number); }) append_number(out_, number);
      },
      value);
  out_ += '\n';
}

void TextWriter::write_histogram(std::string_view labels, const DurationHistogram& histogram) {
  for_each_sample(histogram, [&](std::string_view suffix, auto number, std::string_view bound) {
    begin_sample(suffix, labels, bound);
    append_number(out_, number);
    out_ += '\n';
  });
}

std::string TextWriter::take() {
  if (format_ == Format::kOpenMetrics) out_ += "# EOF\n";
  return std::move(out_);
}

}  // namespace gpuledger::expose
