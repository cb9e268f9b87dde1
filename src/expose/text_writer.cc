#include "expose/text_writer.h"

#include <utility>

#include "expose/escape.h"

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

void TextWriter::begin_family(std::string name, MetricType type, std::string_view unit, std::string_view help) {
  name_ = std::move(name);
  type_ = type;
  unit_ = unit;
  help_ = help;
  header_due_ = true;
}

void TextWriter::write_header() {
  header_due_ = false;
  // OpenMetrics names a counter's family without the suffix that its samples carry. DCGM's counters have none, and
  // their names must stay: there they are of unknown type.
  std::string_view family = name_;
  std::string_view type = type_name(type_);
  if (format_ == Format::kOpenMetrics && type_ == MetricType::kUntyped) type = "unknown";
  if (format_ == Format::kOpenMetrics && type_ == MetricType::kCounter) {
    if (family.ends_with("_total")) {
      family.remove_suffix(std::string_view("_total").size());
    } else {
      type = "unknown";
    }
  }
  out_.append("# HELP ").append(family).append(" ");
  append_help(out_, help_, format_ == Format::kOpenMetrics);
  out_.append("\n# TYPE ").append(family).append(" ").append(type).append("\n");
  // The unit must be the end of the name there.
  if (format_ == Format::kOpenMetrics && !unit_.empty() && family.ends_with(unit_)) {
    out_.append("# UNIT ").append(family).append(" ").append(unit_).append("\n");
  }
}

void TextWriter::begin_sample(std::string_view suffix, std::string_view labels, std::string_view extra) {
  if (header_due_) write_header();
  ++samples_;
  out_.append(name_).append(suffix);
  if (!labels.empty() || !extra.empty()) {
    out_.append("{").append(labels);
    if (!labels.empty() && !extra.empty()) out_ += ',';
    out_.append(extra).append("}");
  }
  out_ += ' ';
}

void TextWriter::add(std::string_view labels, const DurationHistogram& histogram) {
  uint64_t cumulative = 0;
  std::string bound;
  for (size_t i = 0; i <= DurationHistogram::kBuckets; ++i) {
    cumulative += histogram.counts[i];
    bound = "le=\"";
    if (i < DurationHistogram::kBuckets) {
      append_bound(bound, DurationHistogram::kBounds[i]);
    } else {
      bound += "+Inf";
    }
    bound += '"';
    begin_sample("_bucket", labels, bound);
    append_number(out_, cumulative);
    out_ += '\n';
  }
  begin_sample("_sum", labels, {});
  append_number(out_, histogram.sum_seconds);
  out_ += '\n';
  begin_sample("_count", labels, {});
  append_number(out_, cumulative);
  out_ += '\n';
}

std::string TextWriter::take() {
  if (format_ == Format::kOpenMetrics) out_ += "# EOF\n";
  return std::move(out_);
}

}  // namespace gpuledger::expose
