// SPDX-License-Identifier: Apache-2.0
#include "expose/escape.h"

#include <algorithm>

#include "base/utf8.h"

namespace gpuledger::expose {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_plain(char c) {
  return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\';
}

bool is_control(const Utf8Character& character) {
  return character.code < 0x20 || (character.code >= 0x7f && character.code < 0xa0);
}

void append_escaped(std::string& out, std::string_view text, bool escape_quotes) {
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    const std::string_view sequence = text.substr(0, character.length);
    text.remove_prefix(character.length);
    if (sequence == "\n") {
      out += "\\n";
    } else if (sequence == "\\") {
      out += "\\\\";
    } else if (sequence == "\"" && escape_quotes) {
      out += "\\\"";
    } else if (!character.valid || is_control(character)) {
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

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (!character.valid || (is_control(character) && character.code != '\t')) return false;
    text.remove_prefix(character.length);
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
