// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "attribute/estimate/estimator.h"
#include "attribute/estimate/explanation.h"

namespace gpuledger::attribute {

// The assumed signature of a new process. model: the GPU's name. The watts per activity were measured for Hopper;
// other GPUs use a rough table.
Belief signature_prior(const Constants& constants, const std::string& model);

// What is known of processes and kinds beside the signatures themselves: from where each begins, and what is kept over
// a restart.
class Signatures {
 public:
  Signatures(const Constants& constants, const std::string& model)
      : constants_(constants), prior_(signature_prior(constants, model)) {}

  // A process is kept as long as it has an account. False: the account exists already.
  bool add_account(uint64_t account, const ProcKey& process);
  // True: the process has no other account and is forgotten too.
  bool forget(uint64_t account, const ProcKey& process);

  const Belief& prior() const { return prior_; }
  void note_kin(const ProcKey& process, uint64_t kin) { known_[process].kin = kin; }
  // What the signature of a new process begins as: that of its kind, if that is known.
  Belief expected(const ProcKey& process) const;
  // Once a process's signature is known well enough, it is the prior for new processes of its kind.
  void learn_kin(const ProcKey& process, const Explanation& explanation);
  void note_share(const ProcKey& process, double share);
  std::optional<double> usual_power(const ProcKey& process, const Explanation& explanation) const;
  EstimatorMemory memory(const Explanation& explanation) const;
  void recall(const EstimatorMemory& memory, Explanation& explanation);

 private:
  struct Known {
    size_t accounts = 0;  // of this process
    uint64_t kin = 0;
    double share = -1;  // its last share of the GPU's time; below 0 before the first window
  };

  const Constants constants_;
  const Belief prior_;
  std::map<ProcKey, Known> known_;
  std::map<uint64_t, ProcKey> processes_;  // by account
  std::map<uint64_t, Belief> kin_;
};

}  // namespace gpuledger::attribute
