// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "attribute/estimate/constants.h"
#include "attribute/estimate/posterior.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// One explanation of all windows so far: which process had which signature when, and what the windows say of the
// signatures if that is so.
class Explanation {
 public:
  explicit Explanation(const Constants& constants) : posterior_(static_cast<size_t>(constants.together)) {}

  const Posterior& posterior() const { return posterior_; }
  // The signature of a process. That of an unknown one begins as `prior`.
  SignatureId signature_of(const ProcKey& process, const Belief& prior);
  std::optional<SignatureId> known_signature_of(const ProcKey& process) const;
  // Those that the process had before it changed.
  std::vector<SignatureId> earlier(const ProcKey& process) const;
  // From now on the process has an earlier signature, or a new one that begins as `prior`.
  void change(const ProcKey& process, std::optional<SignatureId> earlier, const Belief& prior);
  void forget(const ProcKey& process) { of_.erase(process); }
  void keep_only(std::set<SignatureId> used);

  // A window whose parts have this explanation's signatures. prior: of a signature; it fades towards that. judge: its
  // noise of the readings counts for the odds, if it is given. By its own, an explanation by which all draw the same
  // watts is the most likely one wherever readings are steady: then errors of the times make no difference.
  void learn(const Window& window, const Belief& prior, const Constants& constants, const Explanation* judge = nullptr);
  // Log probability of all readings, if this explanation is right; the constant part is left out.
  double log_odds() const { return log_odds_; }
  // Readings that are no numbers say nothing.
  void add_log_odds(double more) { log_odds_ += std::isfinite(more) ? more : 0; }
  // It takes the place of another one: all windows are divided again.
  void supersede(const Explanation& other) { posterior_.supersede(other.posterior_); }

 private:
  struct Owned {
    SignatureId now = 0;
    std::vector<SignatureId> earlier;
  };

  double length_of_a_second(const Window& window, const Constants& constants) const;

  Posterior posterior_;
  std::map<ProcKey, Owned> of_;
  std::shared_ptr<const Company> company_;  // of the newest window
  double learned_until_ = 0;
  FeatureMatrix noise_ = FeatureMatrix::Zero();  // of the newest window's readings
  double log_odds_ = 0;
};

}  // namespace gpuledger::attribute
