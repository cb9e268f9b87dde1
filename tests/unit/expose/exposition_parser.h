// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "expose/text_writer.h"

namespace gpuledger::expose {

using Labels = std::map<std::string, std::string>;

struct ParsedSample {
  std::string family;
  std::string name;
  Labels labels;
  std::string value;  // as printed
};

struct ParsedFamily {
  std::string type;
  std::string help;
  std::string unit;
};

struct Exposition {
  std::vector<ParsedSample> samples;
  std::map<std::string, ParsedFamily> families;

  bool has(std::string_view name) const;
  // Of the one sample with this name and at least these labels; empty if there is none or more than one.
  std::optional<std::string> value(std::string_view name, const Labels& labels = {}) const;
  // They point into `samples`, so an exposition that ends with the statement is refused.
  std::vector<const ParsedSample*> find(std::string_view name, const Labels& labels = {}) const&;
  std::vector<const ParsedSample*> find(std::string_view name, const Labels& labels = {}) const&& = delete;
  // Exact sum of decimals with up to six places, in millionths: what a double would hide.
  int64_t micro_sum(std::string_view name, const Labels& labels = {}) const;
};

// Refuses everything the formats forbid: families in pieces, series twice, headers twice or late, labels and
// escapes that are wrong, control characters, values that are no numbers, histograms that do not add up.
Result<Exposition> parse_exposition(const std::string& text, Format format);

int64_t parse_micro(const std::string& decimal);

}  // namespace gpuledger::expose
