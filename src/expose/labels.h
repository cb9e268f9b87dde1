// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::expose {

struct ConstantLabel {
  std::string_view name;
  std::string value;
};
using ConstantLabels = std::vector<ConstantLabel>;

// Builds the text between the braces, once per set of labels for many families.
class LabelText {
 public:
  explicit LabelText(const ConstantLabels& constants) : constants_(constants) { text_.reserve(256); }

  // An empty value is left out: for Prometheus it is the same as no label.
  LabelText& add(std::string_view name, std::string_view value);
  LabelText& add(std::string_view name, uint64_t value);

  // Adds the constants whose names the series does not use, and moves the text out.
  std::string take();

 private:
  const ConstantLabels& constants_;
  std::string text_;
  uint32_t overridden_ = 0;  // bit i: constants_[i]
};

}  // namespace gpuledger::expose
