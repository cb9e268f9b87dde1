#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "expose/numbers.h"
#include "model/sample.h"

namespace gpuledger::expose {

enum class Format { kText, kOpenMetrics };
enum class MetricType { kCounter, kGauge, kHistogram, kUntyped };

// Appends families to one string, in either format. A family's HELP and TYPE come with its first sample,
// so one without samples leaves no trace. Labels are given as LabelText made them.
class TextWriter {
 public:
  TextWriter(Format format, size_t expected_bytes) : format_(format) { out_.reserve(expected_bytes); }

  // Writes nothing and only counts.
  static TextWriter counting() {
    TextWriter writer(Format::kText, 0);
    writer.counting_ = true;
    return writer;
  }

  // help and unit must outlive the family.
  void begin_family(std::string name, MetricType type, std::string_view unit, std::string_view help);

  // extra: more label text, for what tells apart the series of one set of labels.
  template <typename Number>
  void add(std::string_view labels, Number value, std::string_view extra = {}) {
    if (counting_) return void(++samples_);
    begin_sample("", labels, extra);
    append_number(out_, value);
    out_ += '\n';
  }
  // What is not a number is absent, never NaN.
  void add(std::string_view labels, double value, std::string_view extra = {}) {
    if (!std::isfinite(value)) return;
    if (counting_) return void(++samples_);
    begin_sample("", labels, extra);
    append_number(out_, value);
    out_ += '\n';
  }
  void add(std::string_view labels, const DurationHistogram& histogram);

  size_t samples() const { return samples_; }
  size_t bytes() const { return out_.size(); }
  std::string take();

 private:
  void write_header();
  void begin_sample(std::string_view suffix, std::string_view labels, std::string_view extra);

  Format format_;
  bool counting_ = false;
  std::string out_;
  size_t samples_ = 0;
  std::string name_;
  MetricType type_ = MetricType::kGauge;
  std::string_view unit_;
  std::string_view help_;
  bool header_due_ = false;
};

std::string_view type_name(MetricType type);

}  // namespace gpuledger::expose
