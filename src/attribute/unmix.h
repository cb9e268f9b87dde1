#pragma once

#include <span>
#include <vector>

namespace gpuledger::attribute {

// One thing that was seen: the sum over sources of share * parts should be `seen`. Too much and too little may
// count differently: where somebody unknown is there too, the known ones may well explain too little.
struct Clue {
  std::vector<double> parts;
  double seen = 0;
  double error_above = 1;
  double error_below = 1;
};

struct Unmixed {
  std::vector<double> shares;
  double misfit = 0;  // root mean square of the clues' errors
};

// The shares (0 to highest[i]) that explain the clues best, by coordinate descent on the weighted squares.
Unmixed unmix(std::span<const Clue> clues, std::span<const double> highest);

}  // namespace gpuledger::attribute
