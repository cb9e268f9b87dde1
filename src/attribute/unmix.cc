#include "attribute/unmix.h"

#include <algorithm>
#include <cassert>
#include <cmath>

// Least squares with bounds and few clues for many sources. The problem is solved from the side of the clues: each has
// a price, a source takes the share that is best for it at these prices, and the prices are right when the sum of the
// shares leaves each clue's error at what its price pays for. The value of the prices is concave and piecewise
// quadratic, so Newton's method with a shorter step where it overshoots ends after few rounds, each of them linear in
// the sources. (Moving one share at a time takes thousands of rounds where two sources are of a kind.)
namespace gpuledger::attribute {
namespace {

constexpr int kMostRounds = 50;
constexpr double kConverged = 1e-9;
// A share that no clue of its own holds stays near this, with an error that gives way to any clue at all.
constexpr double kUsualShare = 0.3;
constexpr double kWeightOfUsual = 1e-2;

using PerClue = std::array<double, kMostClues>;
using Square = std::array<PerClue, kMostClues>;

// What a source wants by itself: weight / 2 * (share - wanted)^2.
struct Wish {
  double weight;
  double wanted;
};

Wish wish_of(const Source& source) {
  const double own = source.own_error > 0 ? source.own_part / (source.own_error * source.own_error) : 0;
  const double weight = own * source.own_part + kWeightOfUsual;
  return {weight, (own * source.own_seen + kWeightOfUsual * kUsualShare) / weight};
}

// Squared error of a clue, by which side of it the sum is on: a positive price is that of too much.
double leeway(const Clue& clue, double price) {
  const double error = price > 0 ? clue.error_above : clue.error_below;
  return error * error;
}

struct Prices {
  std::span<const Clue> clues;
  std::span<const Source> sources;
  std::vector<Wish> wishes;
  std::vector<double> shares;  // at the prices last asked for
  PerClue sum{};               // of the shares' parts

  double value(const PerClue& price) {
    double total = 0;
    sum = {};
    for (size_t i = 0; i < sources.size(); ++i) {
      double cost = 0;
      for (size_t c = 0; c < kMostClues; ++c) cost += sources[i].parts[c] * price[c];
      const Wish& wish = wishes[i];
      shares[i] = std::clamp(wish.wanted - cost / wish.weight, 0.0, sources[i].highest);
      const double off = shares[i] - wish.wanted;
      total += wish.weight / 2 * off * off + cost * shares[i];
      for (size_t c = 0; c < kMostClues; ++c) sum[c] += sources[i].parts[c] * shares[i];
    }
    for (size_t c = 0; c < clues.size(); ++c) {
      total -= price[c] * (leeway(clues[c], price[c]) / 2 * price[c] + clues[c].seen);
    }
    return total;
  }

  PerClue slope(const PerClue& price) const {
    PerClue slope{};
    for (size_t c = 0; c < clues.size(); ++c) {
      slope[c] = sum[c] - clues[c].seen - leeway(clues[c], price[c]) * price[c];
    }
    return slope;
  }

  // How fast the slope falls.
  Square curvature(const PerClue& price) const {
    Square square{};
    for (size_t i = 0; i < sources.size(); ++i) {
      if (shares[i] <= 0 || shares[i] >= sources[i].highest) continue;
      const PerClue& parts = sources[i].parts;
      for (size_t a = 0; a < clues.size(); ++a) {
        const double scaled = parts[a] / wishes[i].weight;
        for (size_t b = 0; b < kMostClues; ++b) square[a][b] += scaled * parts[b];
      }
    }
    for (size_t c = 0; c < clues.size(); ++c) square[c][c] += leeway(clues[c], price[c]);
    return square;
  }
};

// square * x = right, for a square that is positive definite, by elimination.
PerClue solve(Square square, PerClue right, size_t size) {
  for (size_t k = 0; k < size; ++k) {
    for (size_t row = k + 1; row < size; ++row) {
      const double factor = square[row][k] / square[k][k];
      for (size_t c = k; c < size; ++c) square[row][c] -= factor * square[k][c];
      right[row] -= factor * right[k];
    }
  }
  for (size_t k = size; k-- > 0;) {
    for (size_t c = k + 1; c < size; ++c) right[k] -= square[k][c] * right[c];
    right[k] /= square[k][k];
  }
  return right;
}

double misfit_of(const Prices& at) {
  double squares = 0;
  size_t count = 0;
  for (size_t c = 0; c < at.clues.size(); ++c) {
    const double left = at.clues[c].seen - at.sum[c];
    const double error = left < 0 ? at.clues[c].error_above : at.clues[c].error_below;
    if (error >= kNoMatter) continue;
    squares += left * left / (error * error);
    ++count;
  }
  for (size_t i = 0; i < at.sources.size(); ++i) {
    const Source& source = at.sources[i];
    if (source.own_error <= 0) continue;
    const double off = (source.own_seen - source.own_part * at.shares[i]) / source.own_error;
    squares += off * off;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

}  // namespace

Unmixed unmix(std::span<const Clue> clues, std::span<const Source> sources) {
  assert(clues.size() <= kMostClues);
  Prices prices{clues, sources, {}, std::vector<double>(sources.size()), {}};
  prices.wishes.reserve(sources.size());
  for (const Source& source : sources) prices.wishes.push_back(wish_of(source));

  PerClue price{};
  double value = prices.value(price);
  for (int round = 0; round < kMostRounds; ++round) {
    const PerClue slope = prices.slope(price);
    double rise = 0;
    const PerClue step = solve(prices.curvature(price), slope, clues.size());
    for (size_t c = 0; c < clues.size(); ++c) rise += slope[c] * step[c];
    if (rise < kConverged) break;
    constexpr double kShortest = 1e-4;
    constexpr double kEnoughOfRise = 1e-4;
    for (double length = 1; length > kShortest; length /= 2) {
      PerClue next = price;
      for (size_t c = 0; c < clues.size(); ++c) next[c] += length * step[c];
      const double reached = prices.value(next);
      if (reached < value + kEnoughOfRise * length * rise && length / 2 > kShortest) continue;
      price = next;
      value = reached;
      break;
    }
  }
  return {prices.shares, misfit_of(prices)};
}

}  // namespace gpuledger::attribute
