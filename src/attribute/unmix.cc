#include "attribute/unmix.h"

#include <algorithm>
#include <cmath>

namespace gpuledger::attribute {
namespace {

constexpr int kMostRounds = 60;
constexpr double kConverged = 1e-5;

// What each clue lacks: positive where the shares explain too little.
std::vector<double> what_is_left(std::span<const Clue> clues, const std::vector<double>& shares) {
  std::vector<double> left;
  for (const Clue& clue : clues) {
    double sum = clue.seen;
    for (size_t i = 0; i < shares.size(); ++i) sum -= clue.parts[i] * shares[i];
    left.push_back(sum);
  }
  return left;
}

double weight_of(const Clue& clue, double left) {
  const double error = left < 0 ? clue.error_above : clue.error_below;
  return 1 / (error * error);
}

}  // namespace

Unmixed unmix(std::span<const Clue> clues, std::span<const double> highest) {
  Unmixed result;
  std::vector<double>& shares = result.shares;
  for (double most : highest) shares.push_back(std::min(0.3, most));
  std::vector<double> left = what_is_left(clues, shares);

  std::vector<double> weights(clues.size());
  for (int round = 0; round < kMostRounds; ++round) {
    for (size_t c = 0; c < clues.size(); ++c) weights[c] = weight_of(clues[c], left[c]);
    double moved = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      double up = 0;
      double down = 0;
      for (size_t c = 0; c < clues.size(); ++c) {
        const double part = clues[c].parts[i];
        up += weights[c] * part * (left[c] + part * shares[i]);
        down += weights[c] * part * part;
      }
      if (down <= 0) continue;
      const double step = std::clamp(up / down, 0.0, highest[i]) - shares[i];
      shares[i] += step;
      for (size_t c = 0; c < clues.size(); ++c) left[c] -= clues[c].parts[i] * step;
      moved = std::max(moved, std::abs(step));
    }
    if (moved < kConverged) break;
  }
  double squares = 0;
  for (size_t c = 0; c < clues.size(); ++c) squares += left[c] * left[c] * weight_of(clues[c], left[c]);
  result.misfit = clues.empty() ? 0 : std::sqrt(squares / static_cast<double>(clues.size()));
  return result;
}

}  // namespace gpuledger::attribute
