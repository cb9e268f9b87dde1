// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "expose/numbers.h"
#include "model/sample.h"

namespace gpuledger::expose {

enum class MetricType { kCounter, kGauge, kHistogram, kUntyped };
std::string_view type_name(MetricType type);

// The types of samples. Each sink has its own form: true is 1 in the metrics and true in JSON.
using Value = std::variant<bool, uint64_t, double, Energy, Power, Nanoseconds, Bytes, Thousandths, WrittenNumber,
                           const DurationHistogram*>;

struct FamilyHead {
  std::string name;
  MetricType type = MetricType::kGauge;
  std::string_view unit;  // the end of the name, or empty
  std::string_view help;
};

// Takes families one after the other, each followed by its samples: text, OpenMetrics, a count, fields of JSON.
class FamilySink {
 public:
  virtual ~FamilySink() = default;

  // The head's texts must outlive the family.
  virtual void begin_family(FamilyHead head) = 0;

  // labels and extra are label text, as LabelText makes it. extra has the labels that differ within an entry.
  // NaN is left out.
  void add(std::string_view labels, const Value& value, std::string_view extra = {}) {
    if (const auto* number = std::get_if<double>(&value); number && !std::isfinite(*number)) return;
    samples_ += std::holds_alternative<const DurationHistogram*>(value) ? kOfHistogram : 1;
    write(labels, value, extra);
  }

  size_t samples() const { return samples_; }

 protected:
  virtual void write(std::string_view labels, const Value& value, std::string_view extra) = 0;

 private:
  // One each for the buckets, +Inf, sum and count.
  static constexpr size_t kOfHistogram = DurationHistogram::kBuckets + 3;
  size_t samples_ = 0;
};

// Only counts.
class CountingSink final : public FamilySink {
 public:
  void begin_family(FamilyHead) override {}
  // A little more than the samples take as text, so that it is not reallocated.
  size_t bytes() const { return bytes_ + kNameAndValue * samples(); }

 private:
  static constexpr size_t kNameAndValue = 64;
  void write(std::string_view labels, const Value&, std::string_view extra) override {
    bytes_ += labels.size() + extra.size();
  }
  size_t bytes_ = 0;
};

}  // namespace gpuledger::expose
