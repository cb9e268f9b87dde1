// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/joint_estimator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "attribute/estimate/by_shares.h"
#include "attribute/estimate/mean_window.h"

namespace gpuledger::attribute {
namespace {

// Ten minutes of windows can be estimated again; less with many processes, to bound memory (a part has 70 to 230
// bytes).
constexpr size_t kMostWindows = 600;
constexpr size_t kMostParts = 6144;
// Most parts of old windows that one step estimates again, so that no step takes long. With few processes all windows
// are corrected at once, with many over some seconds.
constexpr size_t kPartsPerStep = 128;
constexpr size_t kWindowsPerStep = 128;  // that are checked in one step
constexpr size_t kMostPartsOfChange = 512;
// Variance of an unknown feature.
constexpr double kUnknown = 1e6;
// The monitors' resolution; below: no work.
constexpr double kLeastBusy = 0.003;
}  // namespace

JointEstimator::JointEstimator(const Constants& constants, const std::string& model)
    : constants_(constants), signatures_(constants, model), rosters_(constants), solver_(constants) {}

bool JointEstimator::observe(const Step& step) {
  if (step.evidence == TimeEvidence::kNone && step.members.size() > 1) return false;
  claims_.begin_step();
  for (const Member& member : step.members) {
    if (signatures_.add_account(member.account, member.process)) claims_.add(member.account, 0, 0);
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
  for (const Window* window : windows) seconds += window->seconds;
  for (const Window* window : windows) {
    for (size_t i = 0; i < window->parts.size(); ++i) {
      claims_.add_last(window->roster->seats()[i].account, window->parts[i].joules * step.seconds() / seconds);
    }
  }
}

Window JointEstimator::window_of(const WindowInput& input) {
  const Features jump = (input.shown - last_shown_).cwiseAbs();
  Window window;
  window.roster = rosters_.of(input, signatures_);
  window.end = input.end;
  window.seconds = input.seconds();
  window.joules = std::max(0.0, input.joules);
  window.busy = std::clamp(input.busy * input.clock, kLeastBusy, 1.0);
  window.traced = input.traced;
  window.blind = input.blind;
  window.shown = input.shown;
  for (int f = 0; f < kFeatures; ++f) {
    const double relative = f == kPower ? constants_.power_error : constants_.activity_error;
    const double timing = constants_.timing_error / std::max(0.1, input.seconds()) * jump[f];
    const double error = std::hypot(constants_.reading_error, relative * input.shown[f], timing);
    window.variance[f] = input.known[f] ? error * error : kUnknown;
  }
  window.parts.resize(input.parts.size());
  for (size_t i = 0; i < input.parts.size(); ++i) {
    window.parts[i].traced_time = input.parts[i].time * input.clock;
    window.parts[i].traced_idle = input.parts[i].idle * input.clock;
  }
  return window;
}

void JointEstimator::take_in(const WindowInput& input) {
  claim_seconds(input, 1);
  if (!input.parts.empty()) {
    Window window = window_of(input);
    // An idle window says nothing about signatures, and there is nothing to charge.
    if (window.joules > 0 || window.busy > kLeastBusy) {
      rosters_.add_samples(input, *window.roster);
      Rosters::weigh_shares(window);
      if (!window.blind) find_change(input, window);
      for (size_t i = 0; i < window.parts.size(); ++i) window.roster->seats()[i].belief->share = window.parts[i].share;
      parts_kept_ += window.parts.size();
      history_.push_back(std::move(window));
      solve(history_.back());
      const std::vector<Roster::Seat>& seats = history_.back().roster->seats();
      for (size_t i = 0; i < seats.size(); ++i)
        signatures_.learn_kin(input.parts[i].member.kin, seats[i].process, *seats[i].belief);
      while (history_.size() > kMostWindows || (parts_kept_ > kMostParts && history_.size() > 1)) drop_oldest();
    }
  }
  if (!input.blind) last_shown_ = input.shown;
}

// The end of the step has no readings yet: current signatures are used.
void JointEstimator::charge_for_now(const WindowInput& input) {
  constexpr double kTooShort = 0.01;
  if (input.parts.empty() || input.seconds() < kTooShort) return;
  for_now_ = {input, window_of(input)};
  Rosters::weigh_shares(for_now_.window);
  solver_.solve(for_now_.window, false);
  charge(for_now_, 1);
}

void JointEstimator::withdraw_charge_for_now() {
  charge(for_now_, -1);
  for_now_ = {};
}

// sign: -1 withdraws.
void JointEstimator::charge(const ForNow& now, double sign) {
  for (size_t i = 0; i < now.window.parts.size(); ++i) {
    const Window::Part& part = now.window.parts[i];
    claims_.correct(now.window.roster->seats()[i].account, sign * part.joules, sign * part.error);
  }
  for (const auto& [owner, error] : now.window.owner_errors) claims_.add_owner_error(owner, sign * error);
  claim_seconds(now.input, sign);
}

// By the trace if there is one, else by the samples.
void JointEstimator::claim_seconds(const WindowInput& input, double sign) {
  for (const WindowInput::Part& part : input.parts) {
    const double time = input.traced ? part.time : part.sampled_time;
    claims_.add_seconds(part.member.account, sign * input.seconds() * time, input.traced);
  }
}

void JointEstimator::solve(Window& window) {
  std::vector<std::pair<double, double>> before;
  before.reserve(window.parts.size());
  for (const Window::Part& part : window.parts) before.emplace_back(part.joules, part.error);
  const std::vector<Window::OwnerError> owners_before = window.owner_errors;
  solver_.solve(window);
  for (size_t i = 0; i < window.parts.size(); ++i) {
    if (!window.parts[i].message.empty()) window.roster->seats()[i].belief->note_revision();
  }
  window.revision = revision_of(window);
  for (size_t i = 0; i < window.parts.size(); ++i) {
    const Window::Part& part = window.parts[i];
    claims_.correct(window.roster->seats()[i].account, part.joules - before[i].first, part.error - before[i].second);
  }
  for (const auto& [owner, error] : owners_before) claims_.add_owner_error(owner, -error);
  for (const auto& [owner, error] : window.owner_errors) claims_.add_owner_error(owner, error);
}

// A process may change phase: it then has one of its earlier signatures or a new one. Or an idle process begins to
// work: then the earlier shares no longer hold. With the trace, a change may show only in the mean of several windows.
// With samples, the shares may be wrong for that long.
void JointEstimator::find_change(const WindowInput& input, Window& window) {
  if (find_change_in(window)) return begin_anew(input, window, 1);
  const auto together = static_cast<size_t>(constants_.phase_windows);
  const size_t parts = together * window.parts.size();  // parts that a change would estimate again in one step
  if (!window.traced || window.parts.size() < 2 || parts > kMostPartsOfChange) return;
  Window mean = mean_window(history_, window, together);
  if (mean.windows == together && find_change_in(mean)) begin_anew(input, window, together);
}

// The best explanation is used if it is better by phase_odds.
bool JointEstimator::find_change_in(Window& window) {
  constexpr double kOrdinaryMisfit = 2;
  const WindowSolver::Fit now = solver_.fit(window, 0, nullptr, false);
  if (now.misfit < kOrdinaryMisfit) return false;
  double best = now.log_evidence + constants_.phase_odds;
  size_t seat = 0;
  std::shared_ptr<SignatureBelief> belief;
  for (size_t suspect : busiest(window)) {
    const Roster::Seat& place = window.roster->seats()[suspect];
    for (const auto& other : signatures_.other_phases(place.process)) {
      const double evidence = solver_.fit(window, suspect, other.get(), false).log_evidence;
      if (evidence <= best) continue;
      best = evidence;
      seat = suspect;
      belief = other;
    }
  }
  const bool by_samples = window.parts.size() > 1 && !window.traced && !window.roster->mps;
  if (by_samples && solver_.fit(window, 0, nullptr, true).log_evidence > best) {
    window.roster->over = true;
    return true;
  }
  if (belief) signatures_.begin_phase(window.roster->seats()[seat].process, belief);
  return belief != nullptr;
}

// The newest `windows` windows get the roster of the new phase or of the new shares.
void JointEstimator::begin_anew(const WindowInput& input, Window& window, size_t windows) {
  const std::shared_ptr<Roster> before = window.roster;
  window.roster = rosters_.of(input, signatures_);
  rosters_.add_samples(input, *window.roster);
  if (windows > 1) window.roster->facts = before->facts;  // their samples are in the roster that they had
  Rosters::weigh_shares(window);
  for (auto past = history_.rbegin(); windows > 1; --windows, ++past) {
    for (size_t i = 0; i < past->parts.size(); ++i) {
      Message& message = past->parts[i].message;
      past->roster->seats()[i].belief->replace(message, Message(), true);
      past->roster->seats()[i].belief->note_revision();  // earlier windows are estimated again
      message = Message();
    }
    past->roster = window.roster;
    solve(*past);
  }
}

// Only processes with a large share can change the readings much.
std::vector<size_t> JointEstimator::busiest(const Window& window) {
  constexpr size_t kMost = 8;
  std::vector<size_t> order(window.parts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto busier = [&](size_t a, size_t b) { return window.parts[a].share > window.parts[b].share; };
  if (order.size() > kMost) {
    std::partial_sort(order.begin(), order.begin() + kMost, order.end(), busier);
    order.resize(kMost);
  }
  return order;
}

// From the newest to the oldest and round again, so that each has its turn.
void JointEstimator::look_back() {
  size_t parts = 0;
  const size_t most = std::min(history_.size(), kWindowsPerStep);
  for (size_t looked = 0; looked < most && parts < kPartsPerStep; ++looked) {
    if (next_age_ >= history_.size()) next_age_ = 0;
    Window& window = history_[history_.size() - 1 - next_age_++];
    if (window.parts.size() < 2 && window.revision != 0)
      continue;  // there is nothing to divide, and its message was sent
    // The roster's current shares hold for its recent windows.
    const bool recent = window.roster->at - window.end < constants_.share_memory;
    if (!(recent && Rosters::shares_moved(window)) && window.revision == revision_of(window)) continue;
    if (recent) Rosters::weigh_shares(window);
    solve(window);
    parts += window.parts.size();
  }
}

uint64_t JointEstimator::revision_of(const Window& window) {
  uint64_t sum = 0;
  for (const Roster::Seat& seat : window.roster->seats()) sum += seat.belief->revision();
  return sum;
}

void JointEstimator::drop_oldest() {
  Window& window = history_.front();
  for (size_t i = 0; i < window.parts.size(); ++i) {
    const Window::Part& part = window.parts[i];
    if (part.message.empty()) continue;
    const Roster::Seat& seat = window.roster->seats()[i];
    seat.belief->freeze(part.message, window.parts.size() > 1);
  }
  parts_kept_ -= window.parts.size();
  history_.pop_front();
}

}  // namespace gpuledger::attribute
