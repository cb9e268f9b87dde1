#include "attribute/signature.h"

#include <algorithm>
#include <numeric>

namespace gpuledger::attribute {

void Signature::learn(const Features& shown, double busy, double weight) {
  const double old = std::min(trust_, kMemory);
  milestone_ = false;
  for (double seconds : {3.0, 10.0, kMemory}) milestone_ |= old < seconds && old + weight >= seconds;
  const double part = weight / (old + weight);
  for (size_t i = 0; i < kFeatures; ++i) {
    if (shown[i]) level_[i] += part * (std::max(0.0, *shown[i]) - level_[i]);
  }
  busy_ += part * (busy - busy_);
  trust_ = old + weight;
}

void Signature::learn_alone(const Features& shown, double busy, double seconds) {
  if (!seen_alone_) {
    trust_ = 0;
    level_ = {};
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
  return all < kLeast ? 1.0 : std::clamp(peak_ / all, 1.0, kHighest);
}

}  // namespace gpuledger::attribute
