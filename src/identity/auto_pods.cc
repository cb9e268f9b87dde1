// SPDX-License-Identifier: Apache-2.0
#include "identity/auto_pods.h"

#include <optional>

namespace gpuledger::identity {

AutoPods::AutoPods(std::vector<PodChoice> choices, Timing timing)
    : choices_(std::move(choices)), timing_(timing), active_index_(choices_.size()) {}

Result<std::unique_ptr<AutoPods>> AutoPods::start(std::vector<PodChoice> choices, Timing timing) {
  std::unique_ptr<AutoPods> pods(new AutoPods(std::move(choices), timing));
  GL_TRY_STATUS(pods->thread_.start([own = pods.get()](const std::stop_token& stop) { own->run(stop); }));
  return pods;
}

void AutoPods::run(const std::stop_token& stop) {
  auto failing_since = timing_.timer->now();
  std::optional<task::Timer::Time> searched;
  do {
    const auto now = timing_.timer->now();
    const auto source = active();
    if (!source || source->health().up) failing_since = now;
    const bool given_up = source && now - failing_since >= timing_.again;
    const bool due = !searched || now - *searched >= timing_.again;
    // All choices, or only those better than the one in use.
    if (due && (!source || given_up || active_index_ > 0)) {
      (void)search(stop, !source || given_up ? choices_.size() : active_index_);
      searched = timing_.timer->now();
      const MutexLock lock(mutex_);
      searched_ = true;
    }
  } while (timing_.timer->sleep(stop, timing_.step));
}

// Tries the choices before `end` in order. True: one answered and is now in use.
bool AutoPods::search(const std::stop_token& stop, size_t end) {
  for (size_t i = 0; i < end && !stop.stop_requested(); ++i) {
    if (active() && i == active_index_) continue;
    auto source = try_choice(stop, i);
    if (!source) continue;
    std::shared_ptr<PodSource> old;  // ended outside the lock: that can take a second
    const MutexLock lock(mutex_);
    old = std::exchange(active_, std::move(source));
    active_index_ = i;
    return true;
  }
  return false;
}

std::shared_ptr<PodSource> AutoPods::try_choice(const std::stop_token& stop, size_t index) {
  const PodChoice& choice = choices_[index];
  SourceHealth health{.source = choice.name, .up = false, .reason = choice.why_not(), .errors = {}};
  if (health.reason.empty()) {
    const std::shared_ptr<PodSource> source = choice.open();
    if (!source) return nullptr;
    const auto end = timing_.timer->now() + timing_.patience;
    do {
      if (source->view()) return source;
      health = source->health();
      if (!health.errors.empty()) break;  // it will not recover within `patience`
      if (!timing_.timer->sleep(stop, timing_.step)) return nullptr;
    } while (timing_.timer->now() < end);
    if (health.errors.empty()) {
      health.reason = "no answer";
      health.errors["timeout"] = 1;
    }
  }
  const MutexLock lock(mutex_);
  SourceHealth& sum = tried_[index];
  const auto before = std::move(sum.errors);
  sum = std::move(health);
  for (const auto& [code, count] : before) sum.errors[code] += count;
  return nullptr;
}

std::shared_ptr<PodSource> AutoPods::active() const {
  const MutexLock lock(mutex_);
  return active_;
}

std::shared_ptr<const PodView> AutoPods::view() const {
  const auto source = active();
  return source ? source->view() : nullptr;
}

void AutoPods::look_again() {
  if (const auto source = active()) source->look_again();
}

SourceHealth AutoPods::nobody() const {
  SourceHealth health{.source = "pods", .up = false, .reason = "no pod source works", .errors = {}};
  if (!searched_) health.reason = "no pod source has answered yet";
  health.undecided = !searched_;
  for (const auto& [index, tried] : tried_) {
    health.reason += "; " + tried.source + ": " + tried.reason;
    for (const auto& [code, count] : tried.errors) health.errors[code] += count;
  }
  return health;
}

SourceHealth AutoPods::health() const {
  if (const auto source = active()) return source->health();
  const MutexLock lock(mutex_);
  return nobody();
}

std::vector<SourceHealth> AutoPods::healths() const {
  const auto source = active();
  const MutexLock lock(mutex_);
  std::vector<SourceHealth> all;
  if (source) all.push_back(source->health());
  for (const auto& [index, tried] : tried_) {
    // An older kubelet is no fault; but if no source works, the errors of all that were tried are shown.
    if (source || tried.errors.empty()) continue;
    all.push_back(tried);
    all.back().undecided = !searched_;
  }
  if (!source && all.empty()) all.push_back(nobody());
  return all;
}

}  // namespace gpuledger::identity
