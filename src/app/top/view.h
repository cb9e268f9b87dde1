// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/top/keys.h"

namespace gpuledger::app::top {

enum class SortBy { kGpu, kPid, kWatts, kShare, kMemory, kEnergy, kIdle, kOwner, kProcess };

struct SortColumn {
  SortBy by;
  char key;
  std::string_view word;  // for people
  bool largest_first;
};
// In the order of the columns, and of the enum.
std::span<const SortColumn> sort_columns();
inline const SortColumn& sort_column(SortBy by) {
  return sort_columns()[static_cast<size_t>(by)];
}

// What the user chose.
struct View {
  SortBy sort = SortBy::kWatts;
  bool reverse = false;
  std::string filter;           // empty: none
  bool typing = false;          // the keys go into the filter
  std::optional<uint32_t> gpu;  // index; empty: all
  bool by_owner = false;
  bool help = false;
  size_t offset = 0;  // rows scrolled past; write_screen limits it
};

// What the effect of a key depends on, besides the view.
struct Surroundings {
  std::vector<uint32_t> gpus;  // indexes
  size_t page = 1;             // rows of a page
};

// False: the user wants to end.
bool take_key(const Key& key, const Surroundings& around, View& view);

struct KeyHelp {
  std::string_view keys;
  std::string_view meaning;
};
std::span<const KeyHelp> key_help();

}  // namespace gpuledger::app::top
