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

// Builds the text between the braces, once per set of labels: many families share it.
class LabelText {
 public:
  explicit LabelText(const ConstantLabels& constants) : constants_(constants) { text_.reserve(256); }

  // An empty value means the same as no label to Prometheus, so it is left out.
  LabelText& add(std::string_view name, std::string_view value);
  LabelText& add(std::string_view name, uint64_t value);

  // Adds the constants whose names the series does not use itself, and gives the text away.
  std::string take();

 private:
  const ConstantLabels& constants_;
  std::string text_;
  uint32_t overridden_ = 0;  // bit i: constants_[i]
};

}  // namespace gpuledger::expose
