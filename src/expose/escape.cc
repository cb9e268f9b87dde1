// SPDX-License-Identifier: Apache-2.0
#include "expose/escape.h"

#include <algorithm>
#include <cstdint>

namespace gpuledger::expose {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_plain(char c) {
  return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\';
}

// Length of the valid UTF-8 sequence at the front of text, 0 if there is none. Overlong forms, surrogates
// and values above U+10FFFF are not valid; Go's parser, which Prometheus uses, refuses them too.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  size_t length = 0;
  uint8_t low = 0x80, high = 0xBF;  // of the second byte
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

bool is_control(std::string_view sequence) {
  const auto first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  return sequence.size() == 2 && first == 0xC2 && static_cast<uint8_t>(sequence[1]) < 0xA0;  // U+0080..U+009F
}

void append_escaped(std::string& out, std::string_view text, bool escape_quotes) {
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    text.remove_prefix(sequence.size());
    if (sequence == "\n") {
      out += "\\n";
    } else if (sequence == "\\") {
      out += "\\\\";
    } else if (sequence == "\"" && escape_quotes) {
      out += "\\\"";
    } else if (length == 0 || is_control(sequence)) {
      out += kReplacement;
    } else {
      out += sequence;
    }
  }
}

}  // namespace

void append_label_value(std::string& out, std::string_view value) {
  if (std::all_of(value.begin(), value.end(), is_plain)) {
    out += value;
  } else {
    append_escaped(out, value, true);
  }
}

void append_help(std::string& out, std::string_view help, bool escape_quotes) {
  append_escaped(out, help, escape_quotes);
}

void append_json_string(std::string& out, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += text;
    return;
  }
  constexpr std::string_view kShort = "\b\f\n\r\t\"\\";
  constexpr std::string_view kLetters = "bfnrt\"\\";
  constexpr std::string_view kHex = "0123456789abcdef";
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const auto first = static_cast<uint8_t>(text[0]);
    if (length == 0) {
      out += kReplacement;
    } else if (const size_t letter = kShort.find(text[0]); letter != std::string_view::npos) {
      out.append("\\").append(1, kLetters[letter]);
    } else if (first < 0x20) {
      out.append("\\u00").append(1, kHex[first >> 4]).append(1, kHex[first & 15]);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0 || (is_control(text.substr(0, length)) && text[0] != '\t')) return false;
    text.remove_prefix(length);
  }
  return true;
}

bool is_metric_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

}  // namespace gpuledger::expose
