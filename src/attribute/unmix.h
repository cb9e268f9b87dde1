#pragma once

#include <array>
#include <span>
#include <vector>

namespace gpuledger::attribute {

// So many things all sources together can show at once; room for the loops over them to have a fixed length.
inline constexpr size_t kMostClues = 9;

// One thing that was seen: the sum over sources of share * parts should be `seen`. Too much and too little may
// count differently: where somebody unknown is there too, the known ones may well explain too little.
// A clue that only says "not more" has this error on the other side, and does not count there.
inline constexpr double kNoMatter = 1e3;

struct Clue {
  double seen = 0;
  double error_above = 1;
  double error_below = 1;
};

struct Source {
  std::array<double, kMostClues> parts{};  // what a share of 1 adds to each clue
  double highest = 1;                      // share
  // A clue about this source alone: share * own_part should be own_seen. Error 0: there is none.
  double own_part = 0;
  double own_seen = 0;
  double own_error = 0;
};

struct Unmixed {
  std::vector<double> shares;
  double misfit = 0;  // root mean square of the clues' errors
};

// The shares (0 to highest) for which the sum of the squares of all clues' errors is least. At most kMostClues clues;
// time and memory are linear in the sources.
Unmixed unmix(std::span<const Clue> clues, std::span<const Source> sources);

}  // namespace gpuledger::attribute
