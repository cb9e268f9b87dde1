#include "attribute/estimate/joint_estimator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "attribute/estimate/by_shares.h"

namespace gpuledger::attribute {
namespace {

// Ten minutes of windows can still be estimated again; fewer on a crowded GPU, to bound memory (a part has 220 bytes).
constexpr size_t kMostWindows = 600;
constexpr size_t kMostParts = 6144;
// So many parts of old windows are estimated again in one step: a step never waits for a long solve. A few processes'
// past is put right at once, a crowd's over some seconds.
constexpr size_t kPartsPerStep = 128;
constexpr size_t kWindowsPerStep = 128;  // that are looked at for whether they need it
constexpr size_t kMostKin = 512;
// Variance of a feature that is not known.
constexpr double kUnknown = 1e6;
// Busy less than the monitors' grain: nobody worked.
constexpr double kLeastBusy = 0.003;
// Before the first sample nobody is certain to rest.
constexpr double kLeastFacts = 0.02;

double facts_of(const Roster::Seat& seat) {
  return seat.facts + kLeastFacts;
}

double sum_of_facts(const std::vector<Roster::Seat>& seats) {
  double sum = 0;
  for (const Roster::Seat& seat : seats) sum += facts_of(seat);
  return sum;
}

}  // namespace

JointEstimator::JointEstimator(const Constants& constants, const std::string& model)
    : constants_(constants), prior_(signature_prior(constants, model)), solver_(constants) {}

bool JointEstimator::observe(const Step& step) {
  if (step.evidence == TimeEvidence::kNone && step.members.size() > 1) return false;
  claims_.begin_step();
  for (const Member& member : step.members) {
    if (!processes_.try_emplace(member.account, member.process).second) continue;
    ++known_[member.process].accounts;
    claims_.add(member.account, 0, 0);
  }
  withdraw_charge_for_now();
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

// What each spends now: the mean over the windows that reach into the step.
void JointEstimator::note_pace(const Step& step) {
  std::vector<const Window*> windows;
  if (!for_now_.parts.empty()) windows.push_back(&for_now_);
  for (auto window = history_.rbegin(); window != history_.rend() && window->end > step.begin; ++window) {
    windows.push_back(&*window);
  }
  double seconds = 0;
  for (const Window* window : windows) seconds += window->seconds;
  for (const Window* window : windows) {
    for (size_t i = 0; i < window->parts.size(); ++i) {
      claims_.add_last(window->roster->seats[i].account, window->parts[i].joules * step.seconds() / seconds);
    }
  }
}

Window JointEstimator::window_of(const WindowInput& input) {
  const Features jump = (input.shown - last_shown_).cwiseAbs();
  Window window;
  window.roster = roster_of(input);
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
  if (input.traced) {
    for (const auto& part : input.parts) claims_.add_traced(part.member.account, part.time * input.seconds());
  }
  if (!input.parts.empty()) {
    Window window = window_of(input);
    // A pause says nothing of what a process does when it works, and there is nothing to charge.
    if (window.joules > 0 || window.busy > kLeastBusy) {
      add_samples(input, *window.roster);
      weigh_shares(window);
      if (!window.blind) find_change(input, window);
      for (size_t i = 0; i < window.parts.size(); ++i) window.roster->seats[i].belief->share = window.parts[i].share;
      parts_kept_ += window.parts.size();
      history_.push_back(std::move(window));
      solve(history_.back());
      learn_kin(input);
      while (history_.size() > kMostWindows || (parts_kept_ > kMostParts && history_.size() > 1)) drop_oldest();
    }
  }
  if (!input.blind) last_shown_ = input.shown;
}

// Until the readings for the end of the step are there: what is known has to do.
void JointEstimator::charge_for_now(const WindowInput& input) {
  constexpr double kTooShort = 0.01;
  if (input.parts.empty() || input.seconds() < kTooShort) return;
  for_now_ = window_of(input);
  weigh_shares(for_now_);
  solver_.solve(for_now_, false);
  for (size_t i = 0; i < for_now_.parts.size(); ++i) {
    claims_.correct(for_now_.roster->seats[i].account, for_now_.parts[i].joules, for_now_.parts[i].error);
  }
  for (const auto& [owner, error] : for_now_.owner_errors) claims_.add_owner_error(owner, error);
}

void JointEstimator::withdraw_charge_for_now() {
  for (size_t i = 0; i < for_now_.parts.size(); ++i) {
    claims_.correct(for_now_.roster->seats[i].account, -for_now_.parts[i].joules, -for_now_.parts[i].error);
  }
  for (const auto& [owner, error] : for_now_.owner_errors) claims_.add_owner_error(owner, -error);
  for_now_ = Window();
}

std::shared_ptr<SignatureBelief> JointEstimator::belief_of(const Member& member) {
  Known& known = known_[member.process];
  if (known.belief) return known.belief;
  const auto kin = member.kin == 0 ? kin_.end() : kin_.find(member.kin);
  known.belief =
      std::make_shared<SignatureBelief>(kin == kin_.end() ? prior_ : kin_prior(kin->second.belief, constants_));
  return known.belief;
}

std::shared_ptr<Roster> JointEstimator::roster_of(const WindowInput& input) {
  std::vector<const void*> key;
  key.reserve(input.parts.size() + 1);
  key.push_back(input.mps ? this : nullptr);
  for (const auto& part : input.parts) key.push_back(belief_of(part.member).get());
  std::weak_ptr<Roster>& place = rosters_[key];
  std::shared_ptr<Roster> found = place.lock();
  // A process that only got another account (its owner became known) begins a new roster too.
  const auto same = [](const Roster::Seat& seat, const WindowInput::Part& part) {
    return seat.account == part.member.account;
  };
  if (found && !found->over &&
      std::equal(found->seats.begin(), found->seats.end(), input.parts.begin(), input.parts.end(), same)) {
    return found;
  }
  auto roster = std::make_shared<Roster>();
  roster->mps = input.mps;
  roster->at = input.end;
  for (const auto& part : input.parts) {
    Roster::Seat& seat = roster->seats.emplace_back();
    seat.account = part.member.account;
    seat.owner = part.member.owner;
    seat.process = part.member.process;
    seat.belief = belief_of(part.member);
  }
  roster->by_owner.resize(roster->seats.size());
  std::iota(roster->by_owner.begin(), roster->by_owner.end(), 0);
  std::sort(roster->by_owner.begin(), roster->by_owner.end(),
            [&](uint32_t a, uint32_t b) { return roster->seats[a].owner < roster->seats[b].owner; });
  place = roster;
  if (rosters_.size() > 2 * kMostWindows)
    std::erase_if(rosters_, [](const auto& entry) { return entry.second.expired(); });
  return roster;
}

// The samples of a roster, the older the less, tell the usual share of each. They are a strobe, not independent draws:
// the driver looks at fixed moments and can catch the same process for seconds on end.
void JointEstimator::add_samples(const WindowInput& input, Roster& roster) const {
  const double kept = std::exp(-input.seconds() / constants_.share_memory);
  roster.at = input.end;
  for (size_t i = 0; i < roster.seats.size(); ++i) {
    Roster::Seat& seat = roster.seats[i];
    seat.facts = seat.facts * kept + input.parts[i].samples / constants_.samples_per_fact;
  }
}

void JointEstimator::weigh_shares(Window& window) {
  const std::vector<Roster::Seat>& seats = window.roster->seats;
  const double sum = sum_of_facts(seats);
  for (size_t i = 0; i < seats.size(); ++i) {
    const double share = facts_of(seats[i]) / sum;
    window.parts[i].share = share;
    window.parts[i].share_variance = share * (1 - share) / (sum + 1);
  }
}

void JointEstimator::solve(Window& window) {
  std::vector<std::pair<double, double>> before;
  before.reserve(window.parts.size());
  for (const Window::Part& part : window.parts) before.emplace_back(part.joules, part.error);
  const std::vector<Window::OwnerError> owners_before = window.owner_errors;
  solver_.solve(window);
  for (size_t i = 0; i < window.parts.size(); ++i) {
    if (!window.parts[i].message.empty()) window.roster->seats[i].belief->note_revision();
  }
  window.revision = revision_of(window);
  for (size_t i = 0; i < window.parts.size(); ++i) {
    const Window::Part& part = window.parts[i];
    claims_.correct(window.roster->seats[i].account, part.joules - before[i].first, part.error - before[i].second);
  }
  for (const auto& [owner, error] : owners_before) claims_.add_owner_error(owner, -error);
  for (const auto& [owner, error] : window.owner_errors) claims_.add_owner_error(owner, error);
}

// A process may begin to do something else: its signature is another one from now on, an older one of its own or a new
// one. Or one that rested begins to work: then the shares of before say nothing. Whatever explains the window better by
// enough is assumed from here on.
void JointEstimator::find_change(const WindowInput& input, Window& window) {
  constexpr double kOrdinaryMisfit = 2;
  const WindowSolver::Fit now = solver_.fit(window, 0, nullptr, false);
  if (now.misfit < kOrdinaryMisfit) return;
  double best = now.log_evidence + constants_.phase_odds;
  size_t seat = 0;
  std::shared_ptr<SignatureBelief> belief;
  const auto fresh = std::make_shared<SignatureBelief>(prior_);
  for (size_t suspect : busiest(window)) {
    const Roster::Seat& place = window.roster->seats[suspect];
    std::vector<std::shared_ptr<SignatureBelief>> others = known_[place.process].phases;
    others.push_back(fresh);
    for (const auto& other : others) {
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
  } else if (belief) {
    begin_phase(known_[window.roster->seats[seat].process], belief);
  } else {
    return;
  }
  window.roster = roster_of(input);
  add_samples(input, *window.roster);
  weigh_shares(window);
}

// In a crowd only those with most time can have changed the picture.
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

void JointEstimator::begin_phase(Known& known, std::shared_ptr<SignatureBelief> belief) {
  constexpr size_t kMostPhases = 4;
  belief->share = known.belief->share;
  std::erase(known.phases, belief);
  known.phases.push_back(std::exchange(known.belief, std::move(belief)));
  if (known.phases.size() > kMostPhases) known.phases.erase(known.phases.begin());
}

// From the newest to the oldest and round again, so that none waits for ever.
void JointEstimator::look_back() {
  size_t parts = 0;
  const size_t most = std::min(history_.size(), kWindowsPerStep);
  for (size_t looked = 0; looked < most && parts < kPartsPerStep; ++looked) {
    if (next_age_ >= history_.size()) next_age_ = 0;
    Window& window = history_[history_.size() - 1 - next_age_++];
    if (window.parts.size() < 2 && window.revision != 0)
      continue;  // nothing to share out, and it has said what it showed
    // The share that the roster has now speaks for its recent windows.
    const bool recent = window.roster->at - window.end < constants_.share_memory;
    if (!(recent && shares_moved(window)) && window.revision == revision_of(window)) continue;
    if (recent) weigh_shares(window);
    solve(window);
    parts += window.parts.size();
  }
}

uint64_t JointEstimator::revision_of(const Window& window) {
  uint64_t sum = 0;
  for (const Roster::Seat& seat : window.roster->seats) sum += seat.belief->revision();
  return sum;
}

bool JointEstimator::shares_moved(const Window& window) {
  constexpr double kMaterial = 0.02;  // of the time
  const std::vector<Roster::Seat>& seats = window.roster->seats;
  const double sum = sum_of_facts(seats);
  for (size_t i = 0; i < seats.size(); ++i) {
    const double share = facts_of(seats[i]) / sum;
    if (std::abs(share - window.parts[i].share) > kMaterial) return true;
  }
  return false;
}

void JointEstimator::drop_oldest() {
  Window& window = history_.front();
  for (size_t i = 0; i < window.parts.size(); ++i) {
    const Window::Part& part = window.parts[i];
    if (part.message.empty()) continue;
    Roster::Seat& seat = window.roster->seats[i];
    seat.belief->freeze(part.message, window.parts.size() > 1);
  }
  parts_kept_ -= window.parts.size();
  history_.pop_front();
}

// Known well enough to speak for the next of its kind: its watts to half of what is assumed of anybody.
void JointEstimator::learn_kin(const WindowInput& input) {
  const double anybody = inverse_of(prior_.precision)(kPower, kPower);
  const std::vector<Roster::Seat>& seats = history_.back().roster->seats;
  for (size_t i = 0; i < seats.size(); ++i) {
    const uint64_t kin = input.parts[i].member.kin;
    const SignatureBelief& belief = *seats[i].belief;
    if (kin == 0 || belief.moments().covariance(kPower, kPower) > anybody / 4) continue;
    const auto last = kin_.find(kin);
    // Copies are large and most of a crowd learn nothing in most windows.
    if (last != kin_.end() && last->second.from == seats[i].process && last->second.version == belief.version())
      continue;
    if (kin_.size() >= kMostKin && last == kin_.end()) kin_.erase(kin_.begin());
    kin_.insert_or_assign(kin, Kin{belief, seats[i].process, belief.version()});
  }
}

void JointEstimator::forget(uint64_t account, const ProcKey& process) {
  claims_.forget(account);
  if (processes_.erase(account) == 0) return;
  const auto known = known_.find(process);
  if (known != known_.end() && --known->second.accounts == 0) known_.erase(known);
}

std::optional<double> JointEstimator::usual_power(const ProcKey& process) const {
  const auto known = known_.find(process);
  if (known == known_.end() || !known->second.belief) return std::nullopt;
  const SignatureBelief& belief = *known->second.belief;
  return belief.moments().mean[kPower] * std::max(0.0, belief.share);
}

EstimatorMemory JointEstimator::memory() const {
  EstimatorMemory memory;
  for (const auto& [process, known] : known_) {
    if (known.belief) memory.signatures[process] = known.belief->memory();
  }
  for (const auto& [kin, known] : kin_) memory.kin[kin] = known.belief.memory();
  return memory;
}

void JointEstimator::recall(const EstimatorMemory& memory) {
  for (const auto& [process, saved] : memory.signatures) {
    known_[process].belief = std::make_shared<SignatureBelief>(prior_, saved);
  }
  for (const auto& [kin, saved] : memory.kin) kin_.insert_or_assign(kin, Kin{SignatureBelief(prior_, saved), {}, 0});
}

}  // namespace gpuledger::attribute
