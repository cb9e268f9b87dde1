#include "attribute/signature.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuledger::attribute {
namespace {

// GPM repeats within a percent or some of the value. Watts of several processes add up only within about a tenth,
// because they get in each other's way: on an H200 true joules and the counter agree within 12 %.
constexpr double kActivityError = 0.01;
constexpr double kActivityErrorOfValue = 0.03;
constexpr double kPowerError = 0.03;
constexpr double kPowerErrorOfValue = 0.12;

}  // namespace

double error_of(size_t feature, double value) {
  return feature == 0 ? kPowerError + kPowerErrorOfValue * value : kActivityError + kActivityErrorOfValue * value;
}

double distance(const Features& a, const Features& b) {
  double squares = 0;
  int count = 0;
  for (size_t f = 0; f < kFeatures; ++f) {
    if (!a[f] || !b[f]) continue;
    const double off = (*a[f] - *b[f]) / error_of(f, std::max({0.0, *a[f], *b[f]}));
    squares += off * off;
    ++count;
  }
  return count > 0 ? std::sqrt(squares / count) : 0;
}

void Signature::learn(const Features& shown, double busy, double weight) {
  const double old = std::min(trust_, kMemory);
  const double part = weight / (old + weight);
  for (size_t i = 0; i < kFeatures; ++i) {
    if (shown[i]) level_[i] += part * (std::max(0.0, *shown[i]) - level_[i]);
  }
  busy_ += part * (busy - busy_);
  trust_ = old + weight;
}

void Signature::learn_alone(const Features& shown, double busy, double seconds) {
  if (!seen_alone_) {
    trust_ = std::min(trust_, kRestBesideAlone);
    seen_alone_ = true;
  }
  learn(shown, busy, seconds);
  double all = 0;
  for (const auto& feature : shown) all += std::max(0.0, feature.value_or(0));
  peak_ = std::max(peak_, all);
}

void Signature::learn_from_rest(const Features& rest, double busy, double seconds) {
  if (!seen_alone_) learn(rest, busy, seconds * kRestIsWorth);
}

double Signature::highest_share() const {
  const double all = std::accumulate(level_.begin(), level_.end(), 0.0);
  constexpr double kLeast = 0.01;   // a process that shows nothing has no shape to scale
  constexpr double kHighest = 6.0;  // one second in six: longer pauses look like another phase
  if (all < kLeast) return 1;
  const bool under_mps = busy_ <= 0;  // no sample ever named it
  if (!seen_alone_ && under_mps) return kHighest;
  return std::clamp(peak_ / all, 1.0, kHighest);
}

void Signature::note_ceiling(double power, double busy, double seconds) {
  constexpr double kCaughtEnough = 0.3;  // fewer samples say too little about its time
  ceiling_ = std::min(1.0, ceiling_ * std::exp2(seconds / kMemory));
  if (busy >= kCaughtEnough) ceiling_ = std::min(ceiling_, power / busy);
}

bool Signature::worth_revising() {
  if (!known()) return false;
  double moved = 0;
  double all = 0;
  for (size_t i = 0; i < kFeatures; ++i) {
    moved += std::abs(level_[i] - revised_level_[i]);
    all += level_[i];
  }
  constexpr double kMaterial = 0.05;
  if (moved <= kMaterial * all) return false;
  revised_level_ = level_;
  return true;
}

}  // namespace gpuledger::attribute
