// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "base/text.h"

// What the parsers of cgroup segments have in common.
namespace gpuledger::identity {

// Position of a segment: some names are valid only below certain others.
struct SegmentPlace {
  std::string_view parent;
  std::string_view grandparent;
  bool after_up = false;  // first after "/..": its parents are hidden
  bool below_ecs = false;
};

// As programs print it. Leading zeros would give one job many names.
inline bool is_uint32(std::string_view text) {
  uint32_t number = 0;
  return is_number(text) && (text.front() != '0' || text.size() == 1) &&
         std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
}

}  // namespace gpuledger::identity
