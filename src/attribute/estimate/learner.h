// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "attribute/estimate/signatures.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Learns signatures from windows, each once and in order. A process may change what it does: then it gets another
// signature, and the windows since then are learned again.
class Learner {
 public:
  Learner(const Constants& constants, const std::string& model)
      : constants_(constants), signatures_(constants, model), posterior_(static_cast<size_t>(constants.together)) {}

  // history: all windows, the newest last; learns that one.
  void learn(std::deque<Window>& history);

  Signatures& signatures() { return signatures_; }
  const Signatures& signatures() const { return signatures_; }
  Posterior& posterior() { return posterior_; }
  const Posterior& posterior() const { return posterior_; }

 private:
  // Another explanation of the newest windows.
  struct Change {
    std::optional<size_t> part;     // this process has another signature. Empty: the usual shares are others
    std::optional<SignatureId> to;  // the signature; empty: a new one
  };

  double length_of_a_second(const Window& window) const;
  void take_in(const Window& window);
  std::optional<Change> find_change(const std::deque<Window>& history, size_t windows) const;
  double required_gain(const Window& before, const Window& now, std::optional<size_t> part) const;

  const Constants constants_;
  Signatures signatures_;
  Posterior posterior_;
  std::deque<Posterior> before_;            // each of the newest windows of this company
  std::shared_ptr<const Company> company_;  // of the newest window
  double learned_until_ = 0;
};

}  // namespace gpuledger::attribute
