// SPDX-License-Identifier: Apache-2.0
#include "base/quote.h"

#include <algorithm>

#include "base/utf8.h"

namespace gpuledger {
namespace {

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
  const auto plain = [](char c) { return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), plain)) {  // usual case
    out.append("\"").append(text).append("\"");
    return;
  }
  out += '"';
  while (!text.empty()) {
    const Utf8Character c = decode_utf8(text);
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

Error malformed(std::string_view text, std::string_view why) {
  return {Code::kMalformed, in_quotes(text) + " " + std::string(why)};
}

std::string clean_text(std::string_view text, size_t max_bytes) {
  std::string out;
  bool after_invalid = false;
  while (!text.empty()) {
    const Utf8Character c = decode_utf8(text);
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
