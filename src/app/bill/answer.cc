// SPDX-License-Identifier: Apache-2.0
#include "app/bill/answer.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/quote.h"

namespace gpuledger::app {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestWords = 300;
// Look-ups go through all labels of a series. Pods with many labels have some dozens.
constexpr size_t kMostLabels = 256;

// Where in the answer the reader is.
enum class Place { kTop, kData, kResult, kSeries, kLabels, kPoint, kPoints, kWarnings, kOther };

// As from_chars, with the signs that Prometheus writes: "+Inf".
bool read_number(std::string_view text, double& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

class AnswerReader final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool value) override {
    if (place() == Place::kTop && value && (key_ == "isPartial" || key_ == "partialResponse")) partial_ = true;
    return true;
  }
  bool number_integer(number_integer_t value) override { return time(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return time(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t&) override { return time(value); }

  bool string(string_t& text) override {
    switch (place()) {
      case Place::kTop:
        if (key_ == "status") status_ = text;
        if (key_ == "error") error_ = text;
        return true;
      case Place::kData:
        if (key_ == "resultType") type_ = text;
        return true;
      case Place::kWarnings: warnings_.push_back(text); return true;
      case Place::kLabels: {
        auto& labels = series_.back().labels;
        labels.emplace_back(key_, std::move(text));
        too_many_labels_ = labels.size() > kMostLabels;
        return !too_many_labels_;
      }
      case Place::kResult:  // a scalar: the result itself is the point
        if (!scalar_) {
          series_.emplace_back();
          scalar_ = true;
        }
        return value(text);
      case Place::kPoint: return value(text);
      default: return true;
    }
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override {
    Place next = Place::kOther;
    if (places_.empty()) next = Place::kTop;
    if (place_is(Place::kTop) && key_ == "data") next = Place::kData;
    if (place_is(Place::kResult)) {
      next = Place::kSeries;
      series_.emplace_back();
      has_marks_ = false;
    }
    if (place_is(Place::kSeries) && key_ == "metric") next = Place::kLabels;
    return enter(next);
  }
  bool end_object() override {
    if (place_is(Place::kSeries) && series_.back().samples.empty()) {
      // At once, not at the end: a series takes more memory than its two bytes in the answer.
      no_value_ = !has_marks_;
      if (no_value_) return false;
      series_.pop_back();
    }
    return leave();
  }
  bool start_array(size_t) override {
    Place next = Place::kOther;
    if (place_is(Place::kTop) && key_ == "warnings") next = Place::kWarnings;
    if (place_is(Place::kData) && key_ == "result") {
      next = Place::kResult;
      has_result_ = true;
    }
    if (place_is(Place::kSeries) && key_ == "value") next = Place::kPoint;
    if (place_is(Place::kSeries) && key_ == "values") next = Place::kPoints;
    if (place_is(Place::kPoints)) next = Place::kPoint;
    return enter(next);
  }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  Result<std::vector<BillSeries>> take(bool whole) {
    if (no_value_) return wrong("a series without a value: " + clean_text(series_.back().text(), kLongestWords));
    if (too_many_labels_) {
      return wrong("a series of " + clean_text(series_.back().label("__name__"), kLongestWords) + " with more than " +
                   std::to_string(kMostLabels) + " labels");
    }
    if (!whole) return wrong(wrong_point_ ? "a value that is no number" : "what is no JSON or was cut off");
    if (status_ != "success") {
      return error_.empty() ? wrong("no status \"success\": is it a Prometheus server?") : refused(error_);
    }
    if (partial_) return Error{Code::kUnavailable, "the answer is partial: a part of the storage did not answer"};
    if (!warnings_.empty()) {
      return Error{Code::kUnavailable,
                   "the answer may be partial; the server warns: " + clean_text(warnings_.front(), kLongestWords)};
    }
    if (!has_result_) return wrong("no result");
    if (type_ != "vector" && type_ != "matrix" && type_ != "scalar") {
      return wrong("a result of type " + in_quotes(clean_text(type_, kLongestWords)));
    }
    if (scalar_ && series_.back().samples.empty()) return wrong("a scalar without a value");
    return std::move(series_);
  }
  const std::string& error() const { return error_; }

 private:
  static Error wrong(const std::string& what) { return {Code::kMalformed, "the answer has " + what}; }
  static Error refused(const std::string& words) {
    return {Code::kMalformed, "the server refuses the query: " + clean_text(words, kLongestWords)};
  }
  Place place() const { return places_.empty() ? Place::kOther : places_.back(); }
  bool place_is(Place wanted) const { return place() == wanted && !places_.empty(); }
  bool enter(Place next) {
    constexpr size_t kDeepest = 16;
    places_.push_back(next);
    return places_.size() <= kDeepest;
  }
  bool leave() {
    places_.pop_back();
    return true;
  }
  bool time(double seconds) {
    if (place() == Place::kPoint || place() == Place::kResult) at_ = seconds;
    return true;
  }
  bool value(const std::string& text) {
    BillSeries::Sample sample;
    wrong_point_ = !read_number(text, sample.value) || !std::isfinite(at_) || std::abs(at_) > 1e12;
    if (wrong_point_) return false;
    // VictoriaMetrics gives the marks of a series that ended as NaN.
    if (std::isnan(sample.value) && places_.size() > 1 && places_[places_.size() - 2] == Place::kPoints) {
      has_marks_ = true;
      return true;
    }
    sample.at_ms = std::llround(at_ * 1000);
    series_.back().samples.push_back(sample);
    return true;
  }

  std::vector<Place> places_;
  std::string key_;
  std::string status_;
  std::string error_;
  std::string type_;
  std::vector<std::string> warnings_;
  std::vector<BillSeries> series_;
  double at_ = 0;
  bool partial_ = false;
  bool scalar_ = false;
  bool has_result_ = false;
  bool no_value_ = false;
  bool has_marks_ = false;
  bool too_many_labels_ = false;
  bool wrong_point_ = false;
};

}  // namespace

std::string_view BillSeries::label(std::string_view name) const {
  for (const auto& [key, value] : labels) {
    if (key == name) return value;
  }
  return {};
}

std::string_view BillSeries::own_label(std::string_view name) const {
  constexpr std::string_view kRenamed = "exported_";
  for (const auto& [key, value] : labels) {
    if (key.size() == kRenamed.size() + name.size() && key.starts_with(kRenamed) && key.ends_with(name)) return value;
  }
  return label(name);
}

std::string BillSeries::text() const {
  std::string out(label("__name__"));
  out += "{";
  for (const auto& [key, value] : labels) {
    if (key == "__name__") continue;
    if (!out.ends_with('{')) out += ",";
    out += key + "=" + in_quotes(value);
  }
  return out + "}";
}

Result<std::vector<BillSeries>> parse_answer(std::string_view body) {
  AnswerReader reader;
  const bool whole = Json::sax_parse(body.begin(), body.end(), &reader);
  return reader.take(whole);
}

std::string error_in_answer(std::string_view body) {
  AnswerReader reader;
  (void)Json::sax_parse(body.begin(), body.end(), &reader);
  return clean_text(reader.error(), kLongestWords);
}

}  // namespace gpuledger::app
