// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "base/json_frame.h"
#include "base/units.h"

namespace gpuledger::expose {

// For readers of the snapshot.
class JsonText : public JsonFrame<JsonText> {
 public:
  explicit JsonText(size_t expected_bytes) { text_.reserve(expected_bytes); }

  void value(bool yes);
  void value(double number);  // null if not finite
  void value(Energy energy);  // joules, exact to the microjoule
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  template <std::integral T>
  void value(T number) {
    separate();
    text_ += std::to_string(number);
  }
};

}  // namespace gpuledger::expose
