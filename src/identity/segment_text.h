// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

// What the parsers of cgroup segments have in common.
namespace gpuledger::identity {

// Position of a segment: some names are valid only below certain others.
struct SegmentPlace {
  std::string_view parent;
  std::string_view grandparent;
  bool after_up = false;  // first after "/..": its parents are hidden
  bool below_ecs = false;
};

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}
// As programs print it. Leading zeros would give one job many names.
inline bool is_uint32(std::string_view text) {
  uint32_t number = 0;
  return is_number(text) && (text.front() != '0' || text.size() == 1) &&
         std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
}

inline bool consume_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}
inline bool consume_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace gpuledger::identity
