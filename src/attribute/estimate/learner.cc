// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/learner.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpuledger::attribute {
namespace {

Window with_signatures(Window window, const std::vector<SignatureId>& signatures) {
  for (size_t i = 0; i < window.parts.size(); ++i) window.parts[i].signature = signatures[i];
  return window;
}

// Some windows of one company as one.
Window mean_of(const std::deque<Window>& history, size_t windows) {
  Window mean = history.back();
  const auto since = history.end() - static_cast<std::ptrdiff_t>(windows);
  double seconds = 0;  // there may be a pause between them
  std::for_each(since, history.end(), [&](const Window& window) { seconds += window.seconds(); });
  mean.begin = mean.end - seconds;
  mean.shown.setZero();
  mean.variance.setZero();
  mean.sum_variance = 0;
  for (Window::Part& part : mean.parts) part.expected = part.variance = part.facts = 0;
  for (auto window = since; window != history.end(); ++window) {
    const double weight = window->seconds() / seconds;
    mean.shown += weight * window->shown;
    mean.variance += square(weight) * window->variance;
    mean.sum_variance += square(weight) * window->sum_variance;
    mean.blind = mean.blind || window->blind;
    for (size_t i = 0; i < mean.parts.size(); ++i) {
      mean.parts[i].expected += weight * window->parts[i].expected;
      mean.parts[i].variance += square(weight) * window->parts[i].variance;
      mean.parts[i].facts += window->parts[i].facts;
    }
  }
  return mean;
}

std::vector<SignatureId> signatures_of(const Window& window) {
  std::vector<SignatureId> signatures;
  signatures.reserve(window.parts.size());
  for (const Window::Part& part : window.parts) signatures.push_back(part.signature);
  return signatures;
}

}  // namespace

SignatureId Learner::signature_of(const Member& member) {
  signatures_.note_kin(member.process, member.kin);
  return best_.signature_of(member.process, signatures_.expected(member.process));
}

void Learner::forget(uint64_t account, const ProcKey& process) {
  if (!signatures_.forget(account, process)) return;
  best_.forget(process);
  for (Explanation& earlier : before_) earlier.forget(process);
  for (Rival& rival : rivals_) rival.explanation.forget(process);
}

void Learner::forget_signatures(const std::deque<Window>& history) {
  std::set<SignatureId> used;
  for (const Window& window : history) {
    for (const Window::Part& part : window.parts) used.insert(part.signature);
  }
  best_.keep_only(used);
  for (Rival& rival : rivals_) {
    std::set<SignatureId> of_rival = used;
    for (const auto& signatures : rival.newest) of_rival.insert(signatures.begin(), signatures.end());
    rival.explanation.keep_only(std::move(of_rival));
  }
}

void Learner::learn(std::deque<Window>& history) {
  const Window& newest = history.back();
  if (newest.traced) {
    before_.clear();
    if (history.size() > 1) start_rivals(history);
  } else {
    if (!before_.empty() && newest.company != history[history.size() - 2].company) before_.clear();
    before_.push_back(best_);
  }
  best_.learn(newest, prior(), constants_);
  for (Rival& rival : rivals_) follow(rival, newest);
  if (newest.traced) {
    let_the_best_hold(history);
  } else {
    decide_at_once(history);
  }
  drop_hopeless_rivals();
  for (const Window::Part& part : history.back().parts) signatures_.learn_kin(part.process, best_);
}

void Learner::start_rivals(const std::deque<Window>& history) {
  const Window& newest = history.back();
  const auto changes = likely_changes(newest, history[history.size() - 2], best_, prior(), constants_);
  const size_t most = std::min(changes.size(), static_cast<size_t>(constants_.rivals));
  for (size_t i = 0; i < most && changes[i].gain > -constants_.rival_odds; ++i) {
    Rival rival{best_, signatures_of_newest(history, 1), 0, newest.parts[*changes[i].part].process};
    rival.explanation.change(*rival.changed, changes[i].to, prior());
    rival.explanation.add_log_odds(-changes[i].cost);
    rivals_.push_back(std::move(rival));
  }
}

// By samples: the mean of the newest windows must show the change, and it must be clear who changed. Shares by samples
// come too late to follow explanations side by side: a process that has stopped looks for seconds as if it went on with
// another signature.
void Learner::decide_at_once(std::deque<Window>& history) {
  const auto windows = static_cast<size_t>(constants_.change_windows);
  if (before_.size() > windows) before_.pop_front();
  if (before_.size() < windows || history.size() <= windows) return;
  const Window mean = mean_of(history, windows);
  const Window& previous = history[history.size() - windows - 1];
  const auto changes = likely_changes(mean, previous, before_.front(), prior(), constants_);
  if (changes.empty() || changes.front().gain <= 0) return;
  const Change& best = changes.front();
  const auto of_another =
      std::find_if(changes.begin(), changes.end(), [&](const Change& change) { return change.part != best.part; });
  if (of_another != changes.end() && best.gain - of_another->gain < constants_.change_lead) return;
  rivals_.clear();
  const Explanation now = std::exchange(best_, before_.front());
  best_.supersede(now);
  before_.clear();
  if (best.part) {
    best_.change(mean.parts[*best.part].process, best.to, prior());
  } else {
    history.back().company->facts = facts_of(mean);
  }
  for (size_t age = windows; age > 0; --age) {
    Window& window = history[history.size() - age];
    if (best.part) {
      window.parts[*best.part].signature = *best_.known_signature_of(window.parts[*best.part].process);
    } else {
      expect_times(window, best_.posterior(), constants_);
    }
    best_.learn(window, prior(), constants_);
  }
}

void Learner::follow(Rival& rival, const Window& window) {
  std::vector<SignatureId> signatures;
  signatures.reserve(window.parts.size());
  for (const Window::Part& part : window.parts)
    signatures.push_back(rival.explanation.signature_of(part.process, signatures_.expected(part.process)));
  rival.explanation.learn(with_signatures(window, signatures), prior(), constants_, &best_);
  rival.newest.push_back(std::move(signatures));
  if (rival.newest.size() > static_cast<size_t>(constants_.rival_windows)) rival.newest.pop_front();
  ++rival.windows_apart;
}

// The likeliest one, unless another one by which another process changed is about as likely.
Learner::Rival* Learner::rival_that_leads() {
  const auto likeliest = std::max_element(rivals_.begin(), rivals_.end(), is_less_likely);
  if (likeliest == rivals_.end() || likeliest->explanation.log_odds() <= best_.log_odds()) return nullptr;
  const double ahead = likeliest->explanation.log_odds() - constants_.change_lead;
  const bool unclear = std::any_of(rivals_.begin(), rivals_.end(), [&](const Rival& rival) {
    return rival.changed && likeliest->changed && rival.changed != likeliest->changed &&
           rival.explanation.log_odds() > ahead;
  });
  return unclear ? nullptr : &*likeliest;
}

void Learner::let_the_best_hold(std::deque<Window>& history) {
  Rival* const leader = rival_that_leads();
  if (leader == nullptr) return;
  auto signatures = signatures_of_newest(history, 0);
  std::swap(best_, leader->explanation);
  std::swap(signatures, leader->newest);
  leader->changed.reset();
  best_.supersede(leader->explanation);
  const size_t windows = std::min(history.size(), signatures.size());
  for (size_t age = 1; age <= windows; ++age) {
    Window& window = history[history.size() - age];
    window = with_signatures(std::move(window), signatures[signatures.size() - age]);
  }
  // All others have been apart from the new one for as long as the old one, or longer.
  for (Rival& rival : rivals_) rival.windows_apart = std::max(rival.windows_apart, leader->windows_apart);
}

void Learner::drop_hopeless_rivals() {
  std::erase_if(rivals_, [&](const Rival& rival) {
    return rival.explanation.log_odds() < best_.log_odds() - constants_.rival_odds ||
           static_cast<double>(rival.windows_apart) >= constants_.rival_windows;
  });
  std::sort(rivals_.begin(), rivals_.end(), [](const Rival& a, const Rival& b) { return is_less_likely(b, a); });
  const size_t most = std::min(rivals_.size(), static_cast<size_t>(constants_.rivals));
  rivals_.erase(rivals_.begin() + static_cast<std::ptrdiff_t>(most), rivals_.end());
}

std::deque<std::vector<SignatureId>> Learner::signatures_of_newest(const std::deque<Window>& history,
                                                                   size_t without) const {
  const auto end = history.end() - static_cast<std::ptrdiff_t>(without);
  const auto windows = std::min(end - history.begin(), static_cast<std::ptrdiff_t>(constants_.rival_windows));
  std::deque<std::vector<SignatureId>> newest;
  std::transform(end - windows, end, std::back_inserter(newest), signatures_of);
  return newest;
}

}  // namespace gpuledger::attribute
