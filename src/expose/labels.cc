// SPDX-License-Identifier: Apache-2.0
#include "expose/labels.h"

#include <utility>

#include "expose/escape.h"
#include "expose/numbers.h"

namespace gpuledger::expose {

LabelText& LabelText::add(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  for (size_t i = 0; i < constants_.size(); ++i) {
    if (constants_[i].name == name) overridden_ |= 1u << i;
  }
  if (!text_.empty()) text_ += ',';
  text_ += name;
  text_ += "=\"";
  append_label_value(text_, value);
  text_ += '"';
  return *this;
}

LabelText& LabelText::add(std::string_view name, uint64_t value) {
  std::string digits;
  append_number(digits, value);
  return add(name, digits);
}

std::string LabelText::take() {
  const uint32_t overridden = overridden_;
  for (size_t i = 0; i < constants_.size(); ++i) {
    if ((overridden & (1u << i)) == 0) add(constants_[i].name, constants_[i].value);
  }
  return std::move(text_);
}

}  // namespace gpuledger::expose
