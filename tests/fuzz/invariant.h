// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gpuledger::fuzz {

// libFuzzer keeps the input that ends the program.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

inline bool all_in(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

inline bool is_printable(std::string_view text) {
  for (char c : text) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

// Nothing that a terminal or a log would act upon.
inline bool has_no_control(std::string_view text, std::string_view but = "") {
  for (const char c : text) {
    const bool control = (c >= 0 && c < ' ') || c == 0x7f;
    if (control && but.find(c) == std::string_view::npos) return false;
  }
  return true;
}

}  // namespace gpuledger::fuzz
