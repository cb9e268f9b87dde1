// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "attribute/estimate/change_search.h"
#include "attribute/estimate/explanation.h"
#include "attribute/estimate/signatures.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Learns signatures from windows, each once and in order. A process may change what it does, and it is seldom clear at
// once who changed, and whether. So with the context-switch trace some explanations are followed side by side, and the
// one by which all readings are the most likely holds. When another one overtakes it, the newest windows get the
// signatures of that one.
class Learner {
 public:
  Learner(const Constants& constants, const std::string& model)
      : constants_(constants), signatures_(constants, model), best_(constants) {}

  // history: all windows, the newest last; learns that one. Its parts have the signatures of signature_of().
  void learn(std::deque<Window>& history);

  const Belief& prior() const { return signatures_.prior(); }
  const Posterior& posterior() const { return best_.posterior(); }
  // False: the account is known already.
  bool add_account(uint64_t account, const ProcKey& process) { return signatures_.add_account(account, process); }
  void forget(uint64_t account, const ProcKey& process);
  SignatureId signature_of(const Member& member);
  void note_share(const ProcKey& process, double share) { signatures_.note_share(process, share); }
  // Signatures that no process and no window of the history has.
  void forget_signatures(const std::deque<Window>& history);
  std::optional<double> usual_power(const ProcKey& process) const { return signatures_.usual_power(process, best_); }
  EstimatorMemory memory() const { return signatures_.memory(best_); }
  void recall(const EstimatorMemory& memory) { signatures_.recall(memory, best_); }

 private:
  // Another explanation, and the signatures that it gives to the newest windows.
  struct Rival {
    Explanation explanation;
    std::deque<std::vector<SignatureId>> newest;
    size_t windows_apart = 0;        // since its windows have other signatures
    std::optional<ProcKey> changed;  // by this explanation. Empty: it was the best one before
  };

  static bool is_less_likely(const Rival& a, const Rival& b) {
    return a.explanation.log_odds() < b.explanation.log_odds();
  }
  void start_rivals(const std::deque<Window>& history);
  void decide_at_once(std::deque<Window>& history);
  void follow(Rival& rival, const Window& window);
  Rival* rival_that_leads();
  void let_the_best_hold(std::deque<Window>& history);
  void drop_hopeless_rivals();
  // without: the newest ones that are left out
  std::deque<std::vector<SignatureId>> signatures_of_newest(const std::deque<Window>& history, size_t without) const;

  const Constants constants_;
  Signatures signatures_;
  Explanation best_;
  std::vector<Rival> rivals_;
  std::deque<Explanation> before_;  // each of the newest windows of this company, while there is no trace
};

}  // namespace gpuledger::attribute
