// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/joint_estimator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attribute/estimate/by_shares.h"
#include "attribute/estimate/division.h"

namespace gpuledger::attribute {
namespace {

// Ten minutes of windows can be divided again; less with many processes, to bound memory (a part has 120 bytes).
constexpr size_t kMostWindows = 600;
constexpr size_t kMostParts = 6144;
// Most parts of old windows that one step divides again, so that no step takes long. With few processes all windows
// are corrected at once, with many over some seconds.
constexpr size_t kPartsPerStep = 128;
constexpr size_t kWindowsPerStep = 128;  // that are checked in one step
// Variance of an unknown feature.
constexpr double kUnknown = 1e6;
// The monitors' resolution; below: no work.
constexpr double kLeastBusy = 0.003;
}  // namespace

JointEstimator::JointEstimator(const Constants& constants, const std::string& model)
    : constants_(constants),
      companies_(constants),
      timeline_(constants),
      learner_(constants, model),
      mps_fit_(constants, learner_.prior()) {}

bool JointEstimator::observe(const Step& step) {
  if (step.evidence == TimeEvidence::kNone && step.members.size() > 1) return false;
  claims_.begin_step();
  for (const Member& member : step.members) {
    if (learner_.add_account(member.account, member.process)) claims_.add(member.account, 0, 0);
  }
  if (timeline_.continued_by(step)) {
    withdraw_charge_for_now();
  } else {
    for_now_ = {};  // the charge stays
  }
  if (step.evidence == TimeEvidence::kSlices) {
    charge_by_shares(step, claims_);
    return true;
  }
  for (const WindowInput& input : timeline_.add(step)) take_in(input);
  look_back();
  if (step.quiet) return true;
  charge_for_now(timeline_.rest(step));
  note_pace(step);
  return true;
}

// Joules of this step: the mean over the windows that overlap the step.
void JointEstimator::note_pace(const Step& step) {
  std::vector<const Window*> windows;
  if (!for_now_.window.parts.empty()) windows.push_back(&for_now_.window);
  for (auto window = history_.rbegin(); window != history_.rend() && window->end > step.begin; ++window) {
    windows.push_back(&*window);
  }
  double seconds = 0;
  for (const Window* window : windows) seconds += window->seconds();
  for (const Window* window : windows) {
    for (const Window::Part& part : window->parts)
      claims_.add_last(part.account, part.joules * step.seconds() / seconds);
  }
}

Window JointEstimator::window_of(const WindowInput& input) {
  const Features jump = (input.shown - last_shown_).cwiseAbs();
  Window window;
  window.company = companies_.of(input);
  window.begin = input.begin;
  window.end = input.end;
  window.joules = std::max(0.0, input.joules);
  window.busy = std::clamp(input.busy * input.clock, kLeastBusy, 1.0);
  window.traced = input.traced;
  window.blind = input.blind;
  window.shown = input.shown;
  constexpr double kLeastShown = 0.05;  // of full scale
  const double alone = input.parts.size() == 1 ? constants_.deviation_alone : 1;
  for (int f = 0; f < kFeatures; ++f) {
    const double timing = constants_.timing_error / std::max(0.1, input.seconds()) * jump[f];
    window.variance[f] = input.known[f] ? square(constants_.reading_error) + square(timing) : kUnknown;
    const double relative = f == kPower ? constants_.power_error : constants_.activity_error;
    window.deviation[f] = alone * relative * std::max(kLeastShown, input.shown[f]);
  }
  window.parts.resize(input.parts.size());
  for (size_t i = 0; i < input.parts.size(); ++i) {
    const Member& member = input.parts[i].member;
    Window::Part& part = window.parts[i];
    part.account = member.account;
    part.owner = member.owner;
    part.process = member.process;
    part.signature = learner_.signature_of(member);
    part.facts = input.parts[i].samples / constants_.samples_per_fact;
    part.traced_time = input.parts[i].time * input.clock;
    part.traced_idle = input.parts[i].idle * input.clock;
  }
  return window;
}

void JointEstimator::take_in(const WindowInput& input) {
  claim_seconds(input, 1);
  if (!input.parts.empty()) {
    Window window = window_of(input);
    // An idle window says nothing about signatures, and there is nothing to charge.
    if (window.joules > 0 || window.busy > kLeastBusy) {
      companies_.add_samples(window);
      expect_times(window, learner_.posterior(), constants_);
      parts_kept_ += window.parts.size();
      history_.push_back(std::move(window));
      learner_.learn(history_);
      divide_again(history_.back());
      if (history_.back().company->mps) fit_mps();
      for (const Window::Part& part : history_.back().parts) learner_.note_share(part.process, part.expected);
      while (history_.size() > kMostWindows || (parts_kept_ > kMostParts && history_.size() > 1)) {
        parts_kept_ -= history_.front().parts.size();
        history_.pop_front();
      }
      forget_signatures();
    }
  }
  if (!input.blind) last_shown_ = input.shown;
}

// Those of processes that are gone, once no window has them.
void JointEstimator::forget_signatures() {
  constexpr size_t kWindowsBetween = 60;
  if (++windows_since_forgetting_ < kWindowsBetween) return;
  windows_since_forgetting_ = 0;
  learner_.forget_signatures(history_);
}

// The end of the step has no readings yet: it is divided as the last window of the same processes.
void JointEstimator::charge_for_now(const WindowInput& input) {
  constexpr double kTooShort = 0.01;
  if (input.parts.empty() || input.seconds() < kTooShort) return;
  for_now_ = {input, window_of(input)};
  Window& window = for_now_.window;
  if (!history_.empty() && history_.back().company == window.company && history_.back().joules > 0) {
    const double part = window.joules / history_.back().joules;
    window.parts = history_.back().parts;
    window.owner_errors = history_.back().owner_errors;
    for (Window::Part& each : window.parts) each.joules *= part, each.error *= part;
    for (Window::OwnerError& each : window.owner_errors) each.error *= part;
  } else {
    expect_times(window, learner_.posterior(), constants_);
    divide(window, learner_.posterior(), constants_);
  }
  charge(for_now_.window, 1);
  claim_seconds(for_now_.input, 1);
}

void JointEstimator::withdraw_charge_for_now() {
  charge(for_now_.window, -1);
  claim_seconds(for_now_.input, -1);
  for_now_ = {};
}

// sign: -1 withdraws.
void JointEstimator::charge(const Window& window, double sign) {
  for (const Window::Part& part : window.parts) claims_.correct(part.account, sign * part.joules, sign * part.error);
  for (const auto& [owner, error] : window.owner_errors) claims_.add_owner_error(owner, sign * error);
}

// By the trace if there is one, else by the samples.
void JointEstimator::claim_seconds(const WindowInput& input, double sign) {
  for (const WindowInput::Part& part : input.parts) {
    const double time = input.traced ? part.time : part.sampled_time;
    claims_.add_seconds(part.member.account, sign * input.seconds() * time, input.traced);
  }
}

void JointEstimator::divide_again(Window& window) {
  charge(window, -1);
  divide(window, learner_.posterior(), constants_);
  charge(window, 1);
  window.revision = revision_of(window);
}

// The errors stay those of divide().
void JointEstimator::fit_mps() {
  const auto charge_newest = [&](size_t windows, double sign) {
    for (size_t i = history_.size() - windows; i < history_.size(); ++i) {
      if (!history_[i].company->mps) continue;
      for (const Window::Part& part : history_[i].parts) claims_.correct(part.account, sign * part.joules, 0);
    }
  };
  charge_newest(mps_fit_.reach(history_), -1);
  charge_newest(mps_fit_.fit(history_), 1);
}

// From the newest to the oldest and round again, so that each has its turn.
void JointEstimator::look_back() {
  size_t parts = 0;
  const size_t most = std::min(history_.size(), kWindowsPerStep);
  for (size_t looked = 0; looked < most && parts < kPartsPerStep; ++looked) {
    if (next_age_ >= history_.size()) next_age_ = 0;
    Window& window = history_[history_.size() - 1 - next_age_++];
    if (!window.shared() || window.company->mps) continue;  // there is nothing to divide, or MpsFit does
    // The company's current shares hold for its recent windows.
    const bool recent = !window.traced && window.company->at - window.end < constants_.share_memory;
    const bool moved = recent && shares_moved(window);
    if (!moved && window.revision == revision_of(window)) continue;
    if (moved) expect_times(window, learner_.posterior(), constants_);
    divide_again(window);
    parts += window.parts.size();
  }
}

uint64_t JointEstimator::revision_of(const Window& window) const {
  uint64_t sum = 0;
  for (const Window::Part& part : window.parts) sum += learner_.posterior().revision(part.signature);
  return sum;
}

}  // namespace gpuledger::attribute
