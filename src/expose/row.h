// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "expose/family_sink.h"
#include "expose/view.h"

namespace gpuledger::expose {

// Takes the samples of one row for one entry of its list.
class Samples {
 public:
  Samples(const View& view, FamilySink& sink, std::string_view labels) : view_(view), sink_(sink), labels_(labels) {}

  // With the entry's labels, and extra ones if there are several samples.
  void add(const Value& value, std::string_view extra = {}) { sink_.add(labels_, value, extra); }
  // Empty: no sample.
  template <typename T>
  void add(const std::optional<T>& value, std::string_view extra = {}) {
    if (value) add(Value(*value), extra);
  }
  // With other labels than the entry's.
  void add_as(std::string_view labels, const Value& value) { sink_.add(labels, value); }

  const View& view() const { return view_; }
  size_t written() const { return sink_.samples(); }  // in the whole exposition so far

 private:
  const View& view_;
  FamilySink& sink_;
  std::string_view labels_;
};

// A metric: its name, its HELP and how its value is read from an entry of a list of the View. The rows of a table share
// a list and its labels.
template <typename Entry>
struct Row {
  // get takes the entry and returns a value or an optional (empty: no sample); or it takes the entry and Samples, and
  // adds any number of samples.
  template <typename Get>
  constexpr Row(std::string_view full_name, MetricType metric_type, std::string_view own_labels,
                std::string_view what_it_is, Get get, std::string_view json_field = {})
      : name(full_name),
        type(metric_type),
        labels(own_labels),
        help(what_it_is),
        can_be_absent(requires(const Entry& entry) { get(entry).has_value(); }),
        read(reader(get)),
        field(json_field) {}

  std::string_view name;  // after the table's prefix if it begins with '_'
  MetricType type;
  std::string_view labels;  // besides the entry's, separated by blanks
  std::string_view help;
  bool can_be_absent;  // get returns an optional; then the HELP says when it is empty
  void (*read)(const Entry& entry, Samples& samples);
  std::string_view field;  // of the entry's object in the JSON; empty: none

 private:
  template <typename Get>
  static constexpr auto reader(Get) {
    return +[](const Entry& entry, Samples& samples) {
      if constexpr (std::is_invocable_v<Get, const Entry&, Samples&>) {
        Get{}(entry, samples);
      } else {
        samples.add(Get{}(entry));
      }
    };
  }
};

constexpr auto kCounter = MetricType::kCounter;
constexpr auto kGauge = MetricType::kGauge;
constexpr auto kHistogram = MetricType::kHistogram;

}  // namespace gpuledger::expose
