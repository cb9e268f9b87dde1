// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"

#include <cstdint>

namespace gpuledger {
namespace {

constexpr uint32_t kInvalid = 0xfffd;

struct Character {
  uint32_t code = kInvalid;
  size_t length = 1;  // bytes consumed; 1 for a byte that starts nothing valid
  bool valid = false;
};

Character decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  size_t length = 0;
  uint32_t code = 0;
  uint32_t smallest = 0;  // below it the encoding is overlong
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

bool must_escape(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) ||  // C0, DEL, C1
         code == 0x2028 || code == 0x2029 ||               // line and paragraph separator
         code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);  // direction of writing
}

void append_escape(std::string& out, uint32_t code) {
  switch (code) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 0xf];
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const Character c = decode(text);
    if (c.code == '"' || c.code == '\\') {
      out += '\\';
      out += static_cast<char>(c.code);
    } else if (!c.valid || must_escape(c.code)) {
      append_escape(out, c.code);
    } else {
      out += text.substr(0, c.length);
    }
    text.remove_prefix(c.length);
  }
  out += '"';
}

std::string in_quotes(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string clean_text(std::string_view text, size_t max_bytes) {
  std::string out;
  bool after_invalid = false;
  while (!text.empty()) {
    const Character c = decode(text);
    const std::string_view shown = c.valid ? text.substr(0, c.length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(c.length);
    if ((c.valid && must_escape(c.code)) || (!c.valid && after_invalid)) continue;
    if (out.size() + shown.size() > max_bytes) break;
    out += shown;
    after_invalid = !c.valid;
  }
  return out;
}

}  // namespace gpuledger
