// SPDX-License-Identifier: Apache-2.0
#include "app/job/report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/units.h"

namespace gpuledger::app {
namespace {

// The snapshot has microjoules in decimal digits; sums must stay exact. A server may claim any number of steps: a sum
// ends at half of what fits, so that the total of two fits too.
void add_joules(double joules, Energy& sum) {
  constexpr Energy kMost = Energy::microjoules(std::numeric_limits<int64_t>::max() / 2);
  sum = std::min(kMost, sum + Energy::microjoules(std::llround(joules * 1e6)));
}

std::optional<double> sum(const std::optional<double>& a, const std::optional<double>& b) {
  return a && b ? *a + *b : a ? a : b;
}

void add(const top::Books::OwnerSum& owner, JobReport::Use& use) {
  add_joules(owner.alone_joules, use.alone);
  add_joules(owner.shared_joules, use.shared);
  use.gpu_seconds = sum(use.gpu_seconds, owner.gpu_seconds);
  use.memory_peak = std::max(use.memory_peak, owner.memory_peak);
}

void take_if_any(const std::string& from, std::string& to) {
  if (!from.empty()) to = from;
}

}  // namespace

std::optional<JobReport> report_job(const top::Books& books, const std::string& job) {
  JobReport report;
  report.job = job;
  report.node = books.node;
  report.simulated = books.simulated;
  report.at = books.at;
  std::map<std::string, double> errors;  // by GPU
  std::optional<double> started;
  bool restarted = false;
  std::set<std::string> users;
  for (const top::Books::OwnerSum& owner : books.owners) {
    if (owner.job != job) continue;  // empty for all but Slurm jobs
    JobReport::Step& step = report.steps.emplace_back();
    step.step = owner.step;
    step.gpu = owner.gpu;
    step.error_joules = owner.error_joules;
    add(owner, step);
    add(owner, report.whole);
    errors[owner.gpu_uuid] += owner.error_joules;
    take_if_any(owner.account, report.account);
    take_if_any(owner.partition, report.partition);
    take_if_any(owner.user_name, report.user_name);
    if (!owner.uid.empty()) users.insert(owner.uid);
    report.steps_closed |= owner.job_steps_closed;
    if (owner.job_gpus) report.gpus_given = owner.job_gpus;
    if (owner.job_started) {
      restarted |= owner.job_restarted || (started && started != owner.job_started);
      started = owner.job_started;
    }
    if (owner.gone_seconds) {
      report.ended = std::max(report.ended, std::optional(books.at - *owner.gone_seconds));
    } else {
      report.running = true;
    }
  }
  if (report.steps.empty()) return std::nullopt;
  if (report.running) report.ended.reset();
  // Steps of different users: none of them is the job's.
  if (users.size() == 1) report.uid = *users.begin();
  if (users.size() > 1) report.user_name.clear();
  report.gpus_used = errors.size();
  double variance = 0;
  for (const auto& [gpu, error] : errors) variance += error * error;
  report.whole.error_joules = std::sqrt(variance);
  if (started && !restarted) report.held_seconds = std::max(0.0, report.ended.value_or(report.at) - *started);
  std::sort(report.steps.begin(), report.steps.end(), [](const JobReport::Step& a, const JobReport::Step& b) {
    return std::tie(a.step, a.gpu) < std::tie(b.step, b.gpu);
  });
  return report;
}

std::optional<double> JobReport::idle_ratio() const {
  if (!gpus_given || !held_seconds || !whole.gpu_seconds || *held_seconds <= 0 || steps_closed) return std::nullopt;
  // A requeue that was not noticed, or GPUs that the prolog did not name: no share is better than a wrong one.
  if (static_cast<double>(gpus_used) > *gpus_given) return std::nullopt;
  return std::clamp(1 - *whole.gpu_seconds / (*gpus_given * *held_seconds), 0.0, 1.0);
}

std::optional<double> JobReport::mean_watts() const {
  if (!held_seconds || *held_seconds <= 0 || steps_closed) return std::nullopt;
  return whole.total().joules() / *held_seconds;
}

std::optional<double> JobReport::kwh_cost(double price_per_kwh) const {
  if (price_per_kwh <= 0) return std::nullopt;
  return whole.total().joules() / kJoulesPerKwh * price_per_kwh;
}

}  // namespace gpuledger::app
