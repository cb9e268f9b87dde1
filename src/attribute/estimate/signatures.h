// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "attribute/estimate/estimator.h"
#include "attribute/estimate/posterior.h"

namespace gpuledger::attribute {

// The assumed signature of a new process. model: the GPU's name. The watts per activity were measured for Hopper;
// other GPUs use a rough table.
Belief signature_prior(const Constants& constants, const std::string& model);

// Which signature in the posterior is whose: of each process now and before it changed, and of each kind.
class Signatures {
 public:
  Signatures(const Constants& constants, const std::string& model)
      : constants_(constants), prior_(signature_prior(constants, model)) {}

  // A process is kept as long as it has an account. False: the account exists already.
  bool add_account(uint64_t account, const ProcKey& process);
  void forget(uint64_t account, const ProcKey& process);

  const Belief& prior() const { return prior_; }
  // A new process starts from its kind, if that is known.
  SignatureId of(const Member& member, Posterior& posterior);
  // Those that the process had before it changed.
  std::vector<SignatureId> earlier(const ProcKey& process) const;
  void change(const ProcKey& process, SignatureId now);
  void add_used(std::set<SignatureId>& used) const;

  // Once a process's signature is known well enough, it is the prior for new processes of its kind.
  void learn_kin(uint64_t kin, SignatureId id, const Posterior& posterior);
  void note_share(const ProcKey& process, double share);
  std::optional<double> usual_power(const ProcKey& process, const Posterior& posterior) const;
  EstimatorMemory memory(const Posterior& posterior) const;
  void recall(const EstimatorMemory& memory, Posterior& posterior);

 private:
  struct Known {
    std::optional<SignatureId> now;
    std::vector<SignatureId> earlier;
    size_t accounts = 0;  // of this process
    double share = -1;    // its last share of the GPU's time; below 0 before the first window
  };

  const Constants constants_;
  const Belief prior_;
  std::map<ProcKey, Known> known_;
  std::map<uint64_t, ProcKey> processes_;  // by account
  std::map<uint64_t, Belief> kin_;
};

}  // namespace gpuledger::attribute
