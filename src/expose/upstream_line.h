// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::expose {

// Why a line of another exporter is left out. fault_name() is its code in the error counter.
enum class LineFault : uint8_t {
  kNone,
  kTooLong,
  kNotText,    // not UTF-8, or with a control character
  kName,       // of the metric
  kLabel,      // its name or form, or a duplicate
  kEscape,     // a backslash before anything but \, " and n
  kValue,      // not a number, or something after it
  kBlank,      // NaN, infinite, or one of DCGM's numbers for "no value"
  kTimestamp,  // a sample with a timestamp may be old
  kType,       // not a type of the format, or not the same as before
  kDuplicate,
};
inline constexpr size_t kLineFaults = static_cast<size_t>(LineFault::kDuplicate) + 1;
const char* fault_name(LineFault fault);

struct UpstreamLabel {
  std::string name;
  std::string value;  // without escapes
  friend auto operator<=>(const UpstreamLabel&, const UpstreamLabel&) = default;
};

// One line of the text format 0.0.4. The views point into the line.
struct UpstreamLine {
  enum class Kind : uint8_t { kNothing, kHelp, kType, kSample, kFaulty };
  Kind kind = Kind::kNothing;
  LineFault fault = LineFault::kNone;
  std::string_view name;
  std::string_view text;              // of HELP (escaped), of TYPE, or the sample's number, unchanged
  std::vector<UpstreamLabel> labels;  // by name, none twice, none empty
};

inline constexpr size_t kLongestUpstreamLine = 64 << 10;

// line: without its line break. Every byte of a sample is checked: one line that Prometheus cannot parse makes the
// scrape fail.
UpstreamLine parse_upstream_line(std::string_view line);

}  // namespace gpuledger::expose
