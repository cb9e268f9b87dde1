// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/self_check.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpuledger::attribute {
namespace {

// Two seconds, as steps are not exactly one. A shorter stretch of shared or of alone time says nothing: the driver
// names a process five times a second.
constexpr double kLeast = 1.9;
// Clocks and readings follow a change with a delay.
constexpr double kSettling = 0.9;
// The measured power is of so many seconds at most: what a process did long ago says little about now.
constexpr double kLongestAlone = 10;
// Likewise of the shared time after it was alone. Before, its last 30 to 60 seconds count.
constexpr double kSharedAfter = 5;
constexpr double kHalfOfSharedBefore = 30;
// A process that hardly works while it is alone has no watts of work.
constexpr double kLeastBusy = 0.1;
// Rounding of two clocks, not a step that is missing.
constexpr double kLeastGap = 0.001;
// Older comparisons fade: about the last 50 count.
constexpr double kKept = 1 - 1.0 / 50;

bool usable(double begin, double end, double joules, std::span<const SelfCheck::Process> processes) {
  const auto finite = [](const SelfCheck::Process& each) {
    return std::isfinite(each.joules) && std::isfinite(each.seconds);
  };
  return std::isfinite(begin) && std::isfinite(end) && end > begin && std::isfinite(joules) && joules >= 0 &&
         std::all_of(processes.begin(), processes.end(), finite);
}

}  // namespace

SelfCheck::SelfCheck(const Memory& memory) {
  const bool sound = memory.comparisons > 0 && std::isfinite(memory.wrong_joules) && memory.wrong_joules >= 0 &&
                     std::isfinite(memory.compared_joules) && memory.compared_joules > 0;
  if (sound) memory_ = memory;
}

std::optional<double> SelfCheck::error_ratio() const {
  if (memory_.comparisons == 0) return std::nullopt;
  return std::min(1.0, memory_.wrong_joules / memory_.compared_joules);
}

void SelfCheck::interrupt() {
  alone_.reset();
  shared_.clear();
  all_ = 0;
}

void SelfCheck::observe(double begin, double end, double joules, std::span<const Process> processes) {
  if (!usable(begin, end, joules, processes)) return interrupt();
  if (std::abs(begin - end_) > kLeastGap) interrupt();
  end_ = end;
  all_ += joules;
  if (processes.size() == 1) {
    observe_alone(begin, end, joules, processes.front());
  } else {
    observe_shared(end, processes);
  }
}

void SelfCheck::observe_alone(double begin, double end, double joules, const Process& process) {
  if (!alone_ || alone_->account != process.account) return begin_alone(begin, process);
  Alone& alone = *alone_;
  const double busy = std::max(0.0, process.seconds - std::exchange(alone.busy_at, process.seconds));
  if (begin < alone.since + kSettling) return;
  alone.parts.push_back({end - begin, joules, busy});
  double seconds = 0;
  for (const Alone::Part& part : alone.parts) seconds += part.seconds;
  while (alone.parts.size() > 1 && seconds > kLongestAlone) {
    seconds -= alone.parts.front().seconds;
    alone.parts.pop_front();
  }
  if (alone.before && seconds >= kLeast) {
    compare(alone.watts(), alone.before->begin, *alone.before->before_last);
    alone.before.reset();
  }
}

// The others left in the last shared step, so the charges at its end may know of the time alone already.
void SelfCheck::begin_alone(double begin, const Process& process) {
  alone_ = Alone{};
  alone_->account = process.account;
  alone_->since = begin;
  alone_->busy_at = process.seconds;
  for (auto& [account, shared] : shared_) {
    finish(shared);
    if (account == process.account && shared.before_last) alone_->before = shared;
  }
  shared_.clear();
}

double SelfCheck::Alone::watts() const {
  Part sum{};
  for (const Part& part : parts) {
    sum.seconds += part.seconds;
    sum.joules += part.joules;
    sum.busy += part.busy;
  }
  return sum.seconds >= kLeast && sum.busy > kLeastBusy * sum.seconds ? sum.joules / sum.busy : 0;
}

void SelfCheck::observe_shared(double end, std::span<const Process> processes) {
  for (const Process& process : processes) {
    const Mark now{end, process.joules, process.seconds, all_};
    const auto [entry, fresh] = shared_.try_emplace(process.account);
    Shared& shared = entry->second;
    if (fresh) {
      // The other came in the course of this step, so the shared time begins with the next one.
      shared.start = shared.begin = shared.middle = shared.last = now;
      if (alone_ && alone_->account == process.account && alone_->watts() > 0) shared.watts_before = alone_->watts();
      continue;
    }
    if (now.at - shared.middle.at >= kHalfOfSharedBefore) shared.begin = std::exchange(shared.middle, now);
    shared.before_last = std::exchange(shared.last, now);
    if (now.at - shared.start.at >= kSharedAfter) compare_with_before(shared, now);
  }
  for (auto entry = shared_.begin(); entry != shared_.end();) {
    const bool left = entry->second.last.at < end;
    if (left) finish(entry->second);
    entry = left ? shared_.erase(entry) : std::next(entry);
  }
  alone_.reset();
}

// It ended before kSharedAfter.
void SelfCheck::finish(Shared& shared) {
  if (shared.before_last) compare_with_before(shared, *shared.before_last);
}

void SelfCheck::compare_with_before(Shared& shared, const Mark& end) {
  if (const auto watts = std::exchange(shared.watts_before, std::nullopt)) compare(*watts, shared.start, end);
}

void SelfCheck::compare(double watts, const Mark& begin, const Mark& end) {
  const double all = end.all - begin.all;
  if (watts <= 0 || end.at - begin.at < kLeast || all <= 0) return;
  const double charged = std::clamp(end.claimed - begin.claimed, 0.0, all);
  const double expected = std::clamp(watts * (end.seconds - begin.seconds), 0.0, all);
  memory_.wrong_joules = kKept * memory_.wrong_joules + std::abs(charged - expected);
  memory_.compared_joules = kKept * memory_.compared_joules + all;
  ++memory_.comparisons;
}

}  // namespace gpuledger::attribute
