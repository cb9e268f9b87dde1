#pragma once

#include <array>
#include <optional>

#include "model/sample.h"

namespace gpuledger::attribute {

// What a GPU shows in one step, as numbers of about one: power above the static watts over the power limit, then
// the activity of its parts. Work done is cycles, so activity counts with the clock it ran at (but for memory,
// which has a clock of its own). Empty: not known in this step.
inline constexpr size_t kFeatures = 1 + Activity::kParts;
using Features = std::array<std::optional<double>, kFeatures>;

// How far off a feature may be, and how far apart two sights of a GPU are in such errors (root mean square).
double error_of(size_t feature, double value);
double distance(const Features& a, const Features& b);

// What one process makes a GPU show while it has it to itself.
class Signature {
 public:
  struct Memory {
    std::array<double, kFeatures> level{};
    double busy = 0;
    double peak = 0;
    double trust = 0;
    bool seen_alone = false;
    std::array<double, kFeatures> revised_level{};
    double missed = 0;
    double ceiling = 1;
  };

  Signature() = default;
  explicit Signature(const Memory& memory)
      : level_(memory.level),
        busy_(memory.busy),
        peak_(memory.peak),
        trust_(memory.trust),
        seen_alone_(memory.seen_alone),
        revised_level_(memory.revised_level),
        missed_(memory.missed),
        ceiling_(memory.ceiling) {}
  Memory memory() const { return {level_, busy_, peak_, trust_, seen_alone_, revised_level_, missed_, ceiling_}; }

  void learn_alone(const Features& shown, double busy, double seconds);
  // From what known neighbours left unexplained: worth a fifth, and of little weight after the first sight of it alone.
  void learn_from_rest(const Features& rest, double busy, double seconds);

  bool known() const { return trust_ >= kEnough; }
  bool seen_alone() const { return seen_alone_; }
  // True once when what is known has moved so far that old estimates are worth another look.
  bool worth_revising();
  // Caught by a sample or not: many in a row that miss it make it passive.
  void note_samples(double drawn, bool caught) { missed_ = caught ? 0 : missed_ + drawn; }
  double samples_missed() const { return missed_; }
  // While it was on the GPU for this part of a step, all of them together showed no more power than this: so a
  // second of its own costs no more than the quotient. Forgotten with time, as processes change.
  void note_ceiling(double power, double busy, double seconds);
  double ceiling() const { return ceiling_; }
  double level(size_t feature) const { return level_[feature]; }
  double busy() const { return busy_; }  // share of the GPU's time
  // How much more than on average it can show at once: 1 for steady work, more for bursts. Known only beside other
  // clients of MPS it has shown what they left it, and may show far more when they go.
  double highest_share() const;

 private:
  static constexpr double kEnough = 0.9;       // seconds alone: one step
  static constexpr double kMemory = 20;        // seconds: processes change their ways
  static constexpr double kRestIsWorth = 0.2;  // of a second alone
  // Seconds: all that the rest taught weighs no more than the first step alone, which may have been an odd one.
  static constexpr double kRestBesideAlone = 1;

  void learn(const Features& shown, double busy, double weight);

  std::array<double, kFeatures> level_{};
  double busy_ = 0;
  double peak_ = 0;
  double trust_ = 0;
  bool seen_alone_ = false;
  std::array<double, kFeatures> revised_level_{};
  double missed_ = 0;
  double ceiling_ = 1;  // power of a whole second, over the limit
};

}  // namespace gpuledger::attribute
