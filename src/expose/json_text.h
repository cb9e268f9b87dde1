#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "base/units.h"

namespace gpuledger::expose {

// JSON written straight into one string, without a tree in between: a node with a thousand processes has a hundred
// thousand fields.
class JsonText {
 public:
  explicit JsonText(size_t expected_bytes) { text_.reserve(expected_bytes); }

  void open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  // The next value or bracket belongs to this name. Names are ours and need no escapes.
  void name(std::string_view key) {
    separate();
    text_.append("\"").append(key).append("\":");
    first_ = true;
  }

  void value(bool yes);
  void value(double number);  // null where JSON has no such number
  void value(Energy energy);  // joules, exact to the microjoule
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  template <std::integral T>
  void value(T number) {
    separate();
    text_ += std::to_string(number);
  }

  template <typename T>
  void field(std::string_view key, const T& content) {
    name(key);
    value(content);
  }
  void field_if_any(std::string_view key, std::string_view content) {
    if (!content.empty()) field(key, content);
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace gpuledger::expose
