#include <algorithm>

#include "attribute/mixture.h"

// The part of the mixture that knows who is there, what the GPU looks like, and whom the driver's samples caught.
namespace gpuledger::attribute {
namespace {

// Shares of a company drift: a minute's worth of samples speaks for the present.
constexpr double kSecondsOfSamples = 60;
// Whoever has this much is missed by 25 samples once in 25,000 times.
constexpr double kGoodPartOfTime = 1.0 / 3;
// A GPU that looks different by more than this many errors is at other work.
constexpr double kOtherLook = 4;
// Phases that are told apart; samples of those not seen for longest are forgotten.
constexpr size_t kMostLooks = 8;
// A minute of one-second steps: looks drift as shares do.
constexpr double kMostStepsOfLook = 60;

}  // namespace

// Who is there now. A process that only got another account (its owner became known) is the same company.
void Mixture::gather(const Observed& step) {
  const auto all = [&](auto same) {
    return std::equal(step.who.begin(), step.who.end(), present().who.begin(), present().who.end(), same);
  };
  const bool same_accounts = all([](const Claimant& a, const Member& b) { return a.account == b.account; });
  if (same_accounts && step.mps == present().mps) return;
  const bool same_processes = all([](const Claimant& a, const Member& b) { return a.process == b.process; });
  if (same_processes && step.mps == present().mps) {
    for (auto& look : looks_) {
      look = std::make_shared<Company>(*look);  // steps of the past keep the accounts they had
      for (size_t i = 0; i < step.who.size(); ++i) {
        look->who[i].account = step.who[i].account;
        auto& shape = signatures_[step.who[i].process];  // may have been forgotten with the old account
        if (!shape) shape = look->who[i].shape;
        look->who[i].shape = shape;
      }
    }
  } else {
    auto company = std::make_shared<Company>();
    company->mps = step.mps;
    for (const Claimant& claimant : step.who) {
      auto& shape = signatures_[claimant.process];
      if (!shape) shape = std::make_shared<Signature>();
      company->who.push_back({claimant.account, claimant.process, shape, 0});
    }
    looks_ = {std::move(company)};
  }
}

// One who had a good part of the time is not caught any more, though the GPU looks as before: another took over.
bool Mixture::somebody_stopped(const Company& company) {
  for (size_t i = 0; i < company.who.size(); ++i) {
    const bool stopped = company.shape(i).samples_missed() >= kSamplesToCallPassive;
    if (stopped && company.caught(i) > kGoodPartOfTime) return true;
  }
  return false;
}

// Finds the look that this step has, or begins one. Under MPS samples name nobody, and alone there is nobody to tell.
void Mixture::look(const Observed& step) {
  if (step.mps || step.who.size() < 2) return;
  if (present().steps > 0) {
    const auto far = [&](const std::shared_ptr<Company>& one) { return distance(step.shown, one->look); };
    const auto nearest =
        std::min_element(looks_.begin(), looks_.end(), [&](const auto& a, const auto& b) { return far(a) < far(b); });
    const bool seen_before = far(*nearest) < kOtherLook;
    std::shared_ptr<Company> found;
    if (seen_before && !somebody_stopped(**nearest)) {
      found = *nearest;
    } else {
      found = std::make_shared<Company>();
      found->who = present().who;
      for (Member& member : found->who) member.hits = 0;
    }
    if (seen_before) looks_.erase(nearest);
    looks_.push_front(std::move(found));
    if (looks_.size() > kMostLooks) looks_.pop_back();
  }
  present().steps = std::min(present().steps + 1, kMostStepsOfLook);
  for (size_t f = 0; f < kFeatures; ++f) {
    if (!step.shown[f]) continue;
    const double mean = present().look[f].value_or(*step.shown[f]);
    present().look[f] = mean + (*step.shown[f] - mean) / present().steps;
  }
}

// Counts the samples of the present company. True when they have become so many more that what was estimated from
// the first of them is worth another look.
bool Mixture::meet(const Observed& step) {
  gather(step);
  if (step.quiet) return false;  // samples of a pause say nothing about the work before it
  look(step);
  constexpr double kMostSamples = kSecondsOfSamples * kSamplesPerSecond;
  const double before = present().samples;
  const double drawn = step.seconds * kSamplesPerSecond;
  const double kept = before + drawn > kMostSamples ? std::max(0.0, (kMostSamples - drawn) / before) : 1;
  present().samples = before * kept + drawn;
  for (size_t i = 0; i < step.who.size(); ++i) {
    Member& member = present().who[i];
    member.hits = member.hits * kept + step.who[i].busy * drawn;
    member.shape->note_samples(drawn, step.who[i].busy > 0);
    if (!step.mps) member.shape->note_ceiling(step.shown[0].value_or(1), step.who[i].busy, step.seconds);
  }
  // The first samples change the picture with every step, later ones slowly.
  bool milestone = before < kSamplesToCallPassive;
  for (double enough : {4 * kSamplesToCallPassive, kMostSamples}) {
    milestone |= before < enough && present().samples >= enough;
  }
  return milestone;
}

// The driver can look in step with a workload and miss it for long. Caught at last while the GPU looks as it did, and
// the other is caught too, it was at work all along and nobody was alone. If the other is not, the two took turns.
void Mixture::unlearn_false_loneliness() {
  if (!present().lonely || present().who[*present().lonely].shape->samples_missed() > 0) return;
  const size_t lonely = *present().lonely;
  for (size_t i = 0; i < present().who.size(); ++i) {
    Member& member = present().who[i];
    if (i == lonely || member.shape->seen_alone() || present().caught(i) <= kMostTimeOfPassive) continue;
    Member& other = present().who[lonely];
    *other.shape = before_loneliness_[other.process];
    *member.shape = Signature();  // what it left over was measured by the wrong lesson
    before_loneliness_.erase(other.process);
    for (auto& look : looks_) {
      if (look->lonely == lonely) look->lonely.reset();
    }
    revise(member.process);
    revise(other.process);
    return;
  }
}

}  // namespace gpuledger::attribute
