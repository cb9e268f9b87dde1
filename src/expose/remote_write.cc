// SPDX-License-Identifier: Apache-2.0
#include "expose/remote_write.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>

#include "expose/families.h"
#include "expose/histogram_samples.h"

namespace gpuledger::expose {
namespace {

// Tags of protobuf: the field's number and how its value is written (0: varint, 1: eight bytes, 2: length and bytes).
constexpr char tag(int field, int form) {
  return static_cast<char>(field << 3 | form);
}
constexpr char kRequestSeries = tag(1, 2);
constexpr char kSeriesLabel = tag(1, 2);
constexpr char kSeriesSample = tag(2, 2);
constexpr char kLabelName = tag(1, 2);
constexpr char kLabelValue = tag(2, 2);
constexpr char kSampleValue = tag(1, 1);
constexpr char kSampleTime = tag(2, 0);

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_bytes(std::string& out, char field, std::string_view bytes) {
  out += field;
  append_varint(out, bytes.size());
  out += bytes;
}

void append_fixed(std::string& out, char field, uint64_t value) {
  out += field;
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(value >> shift);
}

struct Label {
  std::string_view name;
  std::string value;
  bool operator<(const Label& other) const { return name < other.name; }
};

// Takes apart what LabelText made: name="value",name="value". Its values have three escapes.
void split_labels(std::string_view text, std::vector<Label>& labels) {
  while (!text.empty()) {
    Label label;
    const size_t equals = text.find('=');
    label.name = text.substr(0, equals);
    text.remove_prefix(std::min(text.size(), equals + 2));
    while (!text.empty() && text.front() != '"') {
      const bool escaped = text.front() == '\\' && text.size() > 1;
      if (escaped) text.remove_prefix(1);
      label.value += escaped && text.front() == 'n' ? '\n' : text.front();
      text.remove_prefix(1);
    }
    text.remove_prefix(std::min<size_t>(text.size(), 2));  // the quote and the comma
    labels.push_back(std::move(label));
  }
}

class SeriesSink final : public FamilySink {
 public:
  explicit SeriesSink(const ExtraLabels& extra) : extra_(extra) {}

  void begin_family(FamilyHead head) override { name_ = std::move(head.name); }
  std::vector<WireSeries> take() { return std::move(series_); }

 private:
  void write(std::string_view labels, const Value& value, std::string_view extra) override {
    if (const auto* histogram = std::get_if<const DurationHistogram*>(&value)) {
      for_each_sample(**histogram, [&](std::string_view suffix, auto number, std::string_view bound) {
        add_series(suffix, labels, bound, number);
      });
      return;
    }
    std::visit([&](const auto& number) { add_series("", labels, extra, number); }, value);
  }

  template <typename Number>
  void add_series(std::string_view suffix, std::string_view labels, std::string_view extra, const Number& number) {
    if constexpr (requires(std::string & out) { append_number(out, number); }) {
      // Through the text, so that a receiver gets exactly the number that a scraper gets.
      digits_.clear();
      append_number(digits_, number);
      double value = 0;
      std::from_chars(digits_.data(), digits_.data() + digits_.size(), value);
      series_.push_back({wire_labels(suffix, labels, extra), std::bit_cast<uint64_t>(value)});
    }
  }

  std::string wire_labels(std::string_view suffix, std::string_view labels, std::string_view extra) {
    labels_.clear();
    labels_.push_back({"__name__", name_ + std::string(suffix)});
    split_labels(labels, labels_);
    split_labels(extra, labels_);
    const size_t own = labels_.size();
    for (const auto& each : extra_) {
      const auto end = labels_.begin() + static_cast<std::ptrdiff_t>(own);
      if (std::none_of(labels_.begin(), end, [&](const Label& label) { return label.name == each.first; }))
        labels_.push_back({each.first, each.second});
    }
    std::sort(labels_.begin(), labels_.end());  // receivers refuse others
    std::string out;
    for (const Label& label : labels_) {
      one_.clear();
      append_bytes(one_, kLabelName, label.name);
      append_bytes(one_, kLabelValue, label.value);
      append_bytes(out, kSeriesLabel, one_);
    }
    return out;
  }

  const ExtraLabels& extra_;
  std::string name_;
  std::vector<WireSeries> series_;
  // Kept for their memory.
  std::vector<Label> labels_;
  std::string digits_, one_;
};

}  // namespace

std::vector<WireSeries> remote_write_series(const Cycle& cycle, const ExposeOptions& options,
                                            const ExtraLabels& extra) {
  View view(cycle, options);
  limit(view);
  SeriesSink sink(extra);
  write_families(view, sink);
  return sink.take();
}

std::string write_request(std::span<const WireSeries> series, int64_t at_ms) {
  std::string out, one, sample;
  for (const WireSeries& each : series) {
    sample.clear();
    append_fixed(sample, kSampleValue, each.value);
    sample += kSampleTime;
    append_varint(sample, static_cast<uint64_t>(at_ms));
    one = each.labels;
    append_bytes(one, kSeriesSample, sample);
    append_bytes(out, kRequestSeries, one);
  }
  return out;
}

}  // namespace gpuledger::expose
