// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuledger {

struct Utf8Character {
  uint32_t code = 0xfffd;
  size_t length = 1;  // bytes consumed; 1 for an invalid byte
  bool valid = false;
};

// The first character of a nonempty text. Overlong forms, surrogates and values above U+10FFFF are invalid, as in Go's
// parser, which Prometheus uses.
inline Utf8Character decode_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  size_t length = 0;
  uint32_t code = 0;
  uint32_t smallest = 0;  // lower values are overlong
  if ((first & 0xe0) == 0xc0) {
    length = 2, code = first & 0x1f, smallest = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    length = 3, code = first & 0x0f, smallest = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    length = 4, code = first & 0x07, smallest = 0x10000;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < smallest || code > 0x10ffff || surrogate) return {};
  return {code, length, true};
}

// Whether the byte is inside a character, not its first.
inline bool continues_utf8(char byte) {
  return (static_cast<uint8_t>(byte) & 0xc0) == 0x80;
}

}  // namespace gpuledger
