// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace gpuledger {

// The brackets, names and commas of JSON, written directly into one string without a tree: a node with a thousand
// processes has a hundred thousand fields. The Writer formats the values: for people or to be read back.
template <typename Writer>
class JsonFrame {
 public:
  void open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  // The next value or bracket has this name. Names are ours and need no escapes.
  void name(std::string_view key) {
    separate();
    text_.append("\"").append(key).append("\":");
    first_ = true;
  }
  template <typename T>
  void field(std::string_view key, const T& content) {
    name(key);
    static_cast<Writer*>(this)->value(content);
  }
  void field_if_any(std::string_view key, std::string_view content) {
    if (!content.empty()) field(key, content);
  }
  std::string take() { return std::move(text_); }

 protected:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }

  std::string text_;

 private:
  bool first_ = true;
};

}  // namespace gpuledger
