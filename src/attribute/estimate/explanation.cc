// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/explanation.h"

#include <algorithm>
#include <cmath>

namespace gpuledger::attribute {

SignatureId Explanation::signature_of(const ProcKey& process, const Belief& prior) {
  const auto [owned, unknown] = of_.try_emplace(process);
  if (unknown) owned->second.now = posterior_.add(prior);
  return owned->second.now;
}

std::optional<SignatureId> Explanation::known_signature_of(const ProcKey& process) const {
  const auto owned = of_.find(process);
  if (owned == of_.end()) return std::nullopt;
  return owned->second.now;
}

std::vector<SignatureId> Explanation::earlier(const ProcKey& process) const {
  const auto owned = of_.find(process);
  return owned == of_.end() ? std::vector<SignatureId>() : owned->second.earlier;
}

void Explanation::change(const ProcKey& process, std::optional<SignatureId> earlier, const Belief& prior) {
  constexpr size_t kMostEarlier = 4;
  Owned& owned = of_.at(process);
  if (earlier) std::erase(owned.earlier, *earlier);
  owned.earlier.push_back(owned.now);
  if (owned.earlier.size() > kMostEarlier) owned.earlier.erase(owned.earlier.begin());
  owned.now = earlier ? *earlier : posterior_.add(prior);
}

void Explanation::keep_only(std::set<SignatureId> used) {
  for (const auto& [process, owned] : of_) {
    used.insert(owned.now);
    used.insert(owned.earlier.begin(), owned.earlier.end());
  }
  posterior_.keep_only(used);
}

// Shares by samples move by chance while the readings stay, as if all processes were alike; and nothing tells whose
// signature changes slowly. So hours together teach, and forget, little more than the first seconds of the newest of
// them.
double Explanation::length_of_a_second(const Window& window, const Constants& constants) const {
  if (!window.shared()) return 1;
  double together = HUGE_VAL;
  for (const Window::Part& part : window.parts)
    together = std::min(together, posterior_.seconds_learned(part.signature));
  return 1 / std::max(1.0, together / constants.company_memory);
}

void Explanation::learn(const Window& window, const Belief& prior, const Constants& constants,
                        const Explanation* judge) {
  const double length = length_of_a_second(window, constants);
  std::vector<Features> means;
  means.reserve(window.parts.size());
  for (const Window::Part& part : window.parts) means.push_back(posterior_.mean(part.signature).cwiseMax(0.0));
  // Another company deviates in another way.
  const double kept =
      window.company == company_ ? std::exp(-(window.end - learned_until_) / constants.deviation_memory) : 0;
  company_ = window.company;
  learned_until_ = window.end;
  const FeatureMatrix usual = window.deviation.cwiseAbs2().asDiagonal();
  posterior_.let_deviation_fade(kept, usual + spread_by_times(window, means, TimeErrors::kLasting));
  FeatureMatrix noise = window.variance.asDiagonal();
  noise += spread_by_times(window, means, TimeErrors::kPassing);
  std::vector<Posterior::Worker> workers;
  workers.reserve(window.parts.size());
  for (size_t i = 0; i < window.parts.size(); ++i) {
    const Window::Part& part = window.parts[i];
    workers.push_back({part.signature, part.expected});
    const double worked = std::min(1.0, part.expected * static_cast<double>(window.parts.size()));
    const double change = constants.fading * window.seconds() * worked * length;
    posterior_.widen(part.signature, change * prior.covariance);
    posterior_.add_covariance(part.signature, window.covariance(i, i), noise);
  }
  if (window.blind) return;
  noise_ = noise;
  if (!window.company->mps)
    add_log_odds(posterior_.log_probability(workers, window.shown, judge == nullptr ? noise : judge->noise_));
  if (!window.traced) noise /= length;
  for (const Posterior::Worker& worker : workers)
    posterior_.note_company(worker.id, window.company.get(), window.seconds());
  posterior_.learn(workers, window.shown, noise);
  const double inside = posterior_.respect_bounds(workers, constants.highest);
  if (!window.company->mps) add_log_odds(inside);
}

}  // namespace gpuledger::attribute
