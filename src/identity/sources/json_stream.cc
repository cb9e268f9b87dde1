// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/json_stream.h"

#include <utility>

namespace gpuledger::identity {
namespace {

constexpr size_t kLongestKey = 64;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

Error unexpected(const char* shape) {
  return {Code::kMalformed, std::string("not ") + shape + " in JSON"};
}

}  // namespace

JsonStream::JsonStream(Shape shape, Sink sink, size_t longest_object)
    : shape_(shape),
      sink_(std::move(sink)),
      longest_(longest_object),
      home_(shape == Shape::kObjects ? 0
            : shape == Shape::kArray ? 1
                                     : 2) {}

bool JsonStream::opens_object(char c) const {
  return c == '{' && depth_ == home_ && (shape_ != Shape::kItems || in_items_);
}

bool JsonStream::complete() const {
  return depth_ == 0 && !in_string_ && (shape_ == Shape::kObjects || ended_);
}

Status JsonStream::feed(std::string_view bytes) {
  size_t begin = 0;  // start of the object's part of bytes
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (!in_object_ && !in_string_ && opens_object(c)) {
      in_object_ = true;
      begin = i;
    }
    if (!in_object_) {
      GL_TRY_STATUS(outside(c));
      continue;
    }
    if (in_string_) {
      (void)is_text(c);
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      dropping_ = ++depth_ - home_ > kDeepest || dropping_;
    } else if ((c == '}' || c == ']') && --depth_ == home_) {
      if (!dropping_) object_.append(bytes, begin, i + 1 - begin);
      end_object();
    }
  }
  if (!in_object_) return ok_status();
  if (!dropping_) object_.append(bytes, begin, bytes.size() - begin);
  if (object_.size() > longest_) dropping_ = true;
  if (dropping_) std::string().swap(object_);
  return ok_status();
}

void JsonStream::end_object() {
  in_object_ = false;
  if (std::exchange(dropping_, false) || object_.size() > longest_) {
    ++skipped_;
  } else {
    sink_(object_);
  }
  // The memory of a large object is freed.
  if (object_.capacity() > (64 << 10)) std::string().swap(object_);
  object_.clear();
}

// Bytes outside the objects.
Status JsonStream::outside(char c) {
  if (shape_ == Shape::kObjects) return is_space(c) ? ok_status() : unexpected("a row of objects");
  if (shape_ == Shape::kArray) {
    if (is_space(c)) return ok_status();
    if (depth_ == 1 && c == ',') return ok_status();
    if (depth_ == 0 && c == '[' && !ended_) {
      depth_ = 1;
    } else if (depth_ == 1 && c == ']') {
      depth_ = 0;
      ended_ = true;
    } else {
      return unexpected("a list of objects");
    }
    return ok_status();
  }
  return structure(c);
}

bool JsonStream::is_text(char c) {
  if (std::exchange(escaped_, false)) return false;
  escaped_ = c == '\\';
  in_string_ = c != '"';
  return in_string_ && !escaped_;
}

Status JsonStream::structure(char c) {
  const char* const shape = "an object with items";
  if (in_items_ && c != ']') return c == ',' || is_space(c) ? ok_status() : unexpected(shape);
  if (ended_ || (depth_ == 0 && c != '{')) return is_space(c) ? ok_status() : unexpected(shape);
  if (envelope_.size() >= kLongestEnvelope) return Error{Code::kMalformed, "too much around the items of a list"};
  envelope_ += c;
  if (in_string_) {
    if (is_text(c) && depth_ == 1 && last_string_.size() < kLongestKey) last_string_ += c;
  } else if (c == '"') {
    in_string_ = true;
    if (depth_ == 1) last_string_.clear();
  } else if (c == '{' || c == '[') {
    if (++depth_ > kDeepest) return Error{Code::kMalformed, "JSON nested too deeply"};
    in_items_ = c == '[' && depth_ == 2 && last_string_ == "items";
  } else if (c == '}' || c == ']') {
    in_items_ = false;
    ended_ = --depth_ == 0;
  }
  return ok_status();
}

}  // namespace gpuledger::identity
