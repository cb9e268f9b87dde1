// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuledger::identity {

// Cuts JSON that comes in pieces, anywhere cut, into the objects it is made of, so that a list of 500 pods is never in
// memory as a whole. Does not parse them: what it hands on is one object if the input was JSON at all.
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

  // An error: it is not of that shape, and nothing that follows can be made sense of.
  Status feed(std::string_view bytes);
  // Nothing has begun and not ended.
  bool complete() const;
  // Objects left out because they were too long or too deep.
  uint64_t skipped() const { return skipped_; }
  // kItems: everything around the items, with an empty list in their place. Valid JSON if the input was.
  const std::string& envelope() const { return envelope_; }

 private:
  bool opens_object(char c) const;
  Status outside(char c);
  Status structure(char c);
  bool is_text(char c);  // of a byte in a string: no escape, and not its end
  void end_object();

  const Shape shape_;
  const Sink sink_;
  const size_t longest_;
  unsigned home_;  // the depth at which the objects lie

  unsigned depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool in_object_ = false;
  bool dropping_ = false;  // the object is being skipped
  bool in_items_ = false;
  bool ended_ = false;
  std::string object_;
  std::string envelope_;
  std::string last_string_;  // the last one right inside the envelope: in front of a value, its key
  uint64_t skipped_ = 0;
};

}  // namespace gpuledger::identity
