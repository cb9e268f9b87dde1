// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuledger::identity {

// Splits JSON that arrives in arbitrary pieces into its objects, so that a list of 500 pods is never in memory as a
// whole. Does not parse them: its output is valid only if the input was valid JSON.
class JsonStream {
 public:
  enum class Shape {
    kObjects,  // one after the other: {..}{..}, a watch
    kArray,    // [{..},{..}]
    kItems,    // {"kind":"PodList", "items":[{..},{..}], ..}
  };
  using Sink = std::function<void(std::string_view object)>;
  static constexpr size_t kLongestObject = 8 << 20;
  static constexpr size_t kLongestEnvelope = 1 << 20;
  static constexpr unsigned kDeepest = 64;

  JsonStream(Shape shape, Sink sink, size_t longest_object = kLongestObject);

  // Error: the shape is wrong, and the rest cannot be read.
  Status feed(std::string_view bytes);
  // No object or list is still open.
  bool complete() const;
  // Objects left out because they were too long or too deep.
  uint64_t skipped() const { return skipped_; }
  // kItems: everything except the items, which are an empty list. Valid JSON if the input was.
  const std::string& envelope() const { return envelope_; }

 private:
  bool opens_object(char c) const;
  Status outside(char c);
  Status structure(char c);
  bool is_text(char c);  // for a byte in a string: neither escape nor end
  void end_object();

  const Shape shape_;
  const Sink sink_;
  const size_t longest_;
  unsigned home_;  // the depth of the objects

  unsigned depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool in_object_ = false;
  bool dropping_ = false;  // the object is being skipped
  bool in_items_ = false;
  bool ended_ = false;
  std::string object_;
  std::string envelope_;
  std::string last_string_;  // the last string at the envelope's top level: the key of a value
  uint64_t skipped_ = 0;
};

}  // namespace gpuledger::identity
