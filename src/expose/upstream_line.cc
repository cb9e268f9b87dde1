// SPDX-License-Identifier: Apache-2.0
#include "expose/upstream_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "expose/escape.h"

namespace gpuledger::expose {
namespace {

using Kind = UpstreamLine::Kind;

constexpr size_t kMostLabels = 40;
constexpr std::string_view kBlanks = " \t";

// The four blanks of each of DCGM's number types: 32 bits, double, 64 bits. A counter above the first two is valid
// again; one that has exactly such a value loses one reading.
bool is_dcgm_blank(double value) {
  const auto is_one_of = [&](double first) { return value >= first && value <= first + 3; };
  return is_one_of(0x7ffffff0) || is_one_of(0x1p47) || value >= 0x1p63;
}

bool is_label_name(std::string_view name) {
  // A leading __ is reserved by Prometheus: __name__ would rename the metric.
  return is_metric_name(name) && name.find(':') == std::string_view::npos && !name.starts_with("__");
}

class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  UpstreamLine read() {
    if (rest_.size() > kLongestUpstreamLine) return faulty(LineFault::kTooLong);
    if (!is_plain_text(rest_)) return faulty(LineFault::kNotText);
    skip_blanks();
    if (rest_.empty()) return {};
    if (rest_.front() == '#') return read_comment();
    return read_sample();
  }

 private:
  static UpstreamLine faulty(LineFault fault) {
    UpstreamLine line;
    line.kind = Kind::kFaulty;
    line.fault = fault;
    return line;
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size())); }

  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view take_until(std::string_view ends) {
    const std::string_view word = rest_.substr(0, std::min(rest_.find_first_of(ends), rest_.size()));
    rest_.remove_prefix(word.size());
    return word;
  }

  UpstreamLine read_comment() {
    rest_.remove_prefix(1);
    skip_blanks();
    const std::string_view what = take_until(kBlanks);
    if (what != "HELP" && what != "TYPE") return {};
    UpstreamLine line;
    line.kind = what == "HELP" ? Kind::kHelp : Kind::kType;
    skip_blanks();
    line.name = take_until(kBlanks);
    if (!is_metric_name(line.name)) return faulty(LineFault::kName);
    skip_blanks();
    line.text = rest_;
    if (line.kind == Kind::kHelp) return line;
    line.text = line.text.substr(0, line.text.find_last_not_of(kBlanks) + 1);
    constexpr std::string_view kTypes[] = {"counter", "gauge", "histogram", "summary", "untyped"};
    if (std::find(std::begin(kTypes), std::end(kTypes), line.text) == std::end(kTypes)) return faulty(LineFault::kType);
    return line;
  }

  UpstreamLine read_sample() {
    UpstreamLine line;
    line.kind = Kind::kSample;
    line.name = take_until(" \t{");
    if (!is_metric_name(line.name)) return faulty(LineFault::kName);
    skip_blanks();
    if (take('{')) {
      if (const LineFault fault = read_labels(line.labels); fault != LineFault::kNone) return faulty(fault);
    }
    skip_blanks();
    line.text = take_until(kBlanks);
    if (const LineFault fault = check_number(line.text); fault != LineFault::kNone) return faulty(fault);
    skip_blanks();
    if (rest_.empty()) return line;
    const bool digits = rest_.find_first_not_of("-0123456789 \t") == std::string_view::npos;
    return faulty(digits ? LineFault::kTimestamp : LineFault::kValue);
  }

  LineFault read_labels(std::vector<UpstreamLabel>& labels) {
    for (skip_blanks(); !take('}'); skip_blanks()) {
      UpstreamLabel label;
      label.name = take_until(" \t=}\"");
      if (!is_label_name(label.name) || labels.size() == kMostLabels) return LineFault::kLabel;
      skip_blanks();
      if (!take('=')) return LineFault::kLabel;
      skip_blanks();
      if (!take('"')) return LineFault::kLabel;
      if (const LineFault fault = read_value(label.value); fault != LineFault::kNone) return fault;
      labels.push_back(std::move(label));
      skip_blanks();
      if (!take(',') && !rest_.starts_with('}')) return LineFault::kLabel;
    }
    std::sort(labels.begin(), labels.end());
    const auto same = [](const UpstreamLabel& a, const UpstreamLabel& b) { return a.name == b.name; };
    if (std::adjacent_find(labels.begin(), labels.end(), same) != labels.end()) return LineFault::kLabel;
    std::erase_if(labels, [](const UpstreamLabel& label) { return label.value.empty(); });
    return LineFault::kNone;
  }

  LineFault read_value(std::string& value) {
    for (;;) {
      value += take_until("\\\"");
      if (take('"')) return LineFault::kNone;
      if (!take('\\')) return LineFault::kLabel;
      if (rest_.empty()) return LineFault::kEscape;
      const char c = rest_.front();
      if (c != '\\' && c != '"' && c != 'n') return LineFault::kEscape;
      value += c == 'n' ? '\n' : c;
      rest_.remove_prefix(1);
    }
  }

  static LineFault check_number(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || end != text.data() + text.size() || error == std::errc::invalid_argument)
      return LineFault::kValue;
    const bool known = error == std::errc() && std::isfinite(value) && !is_dcgm_blank(value);
    return known ? LineFault::kNone : LineFault::kBlank;
  }

  std::string_view rest_;
};

}  // namespace

const char* fault_name(LineFault fault) {
  switch (fault) {
    case LineFault::kNone: return "none";
    case LineFault::kTooLong: return "line_too_long";
    case LineFault::kNotText: return "line_not_text";
    case LineFault::kName: return "line_name";
    case LineFault::kLabel: return "line_label";
    case LineFault::kEscape: return "line_escape";
    case LineFault::kValue: return "line_value";
    case LineFault::kBlank: return "line_blank";
    case LineFault::kTimestamp: return "line_timestamp";
    case LineFault::kType: return "line_type";
    case LineFault::kDuplicate: return "line_duplicate";
  }
  return "none";
}

UpstreamLine parse_upstream_line(std::string_view line) {
  return LineReader(line).read();
}

}  // namespace gpuledger::expose
