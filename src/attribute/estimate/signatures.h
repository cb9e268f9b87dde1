// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "attribute/estimate/estimator.h"
#include "attribute/estimate/signature_belief.h"

namespace gpuledger::attribute {

// The signatures of all processes of a GPU: of each process's current phase, of its earlier phases, and of its kind.
class Signatures {
 public:
  Signatures(const Constants& constants, const std::string& model)
      : constants_(constants),
        prior_(signature_prior(constants, model)),
        anybodys_variance_(inverse_of(prior_.precision)(kPower, kPower)) {}

  // A process is kept as long as it has an account. False: the account exists already.
  bool add_account(uint64_t account, const ProcKey& process);
  void forget(uint64_t account, const ProcKey& process);

  // Of the current phase. A new process starts from its kind, if that is known.
  std::shared_ptr<SignatureBelief> of(const Member& member);
  // Of its earlier phases, and last a new one.
  std::vector<std::shared_ptr<SignatureBelief>> other_phases(const ProcKey& process) const;
  void begin_phase(const ProcKey& process, std::shared_ptr<SignatureBelief> belief);
  // Once a process's signature is known well enough, it is the prior for new processes of its kind.
  void learn_kin(uint64_t kin, const ProcKey& process, const SignatureBelief& belief);

  std::optional<double> usual_power(const ProcKey& process) const;
  EstimatorMemory memory() const;
  void recall(const EstimatorMemory& memory);

 private:
  struct Known {
    std::shared_ptr<SignatureBelief> belief;               // of the current phase
    std::vector<std::shared_ptr<SignatureBelief>> phases;  // the earlier ones
    size_t accounts = 0;                                   // of this process
  };
  struct Kin {
    SignatureBelief belief;
    ProcKey from;  // the process it describes
    uint64_t version = 0;
  };

  const Constants constants_;
  const SignaturePrior prior_;
  const double anybodys_variance_;  // of the watts in the prior
  std::map<ProcKey, Known> known_;
  std::map<uint64_t, ProcKey> processes_;  // by account
  std::map<uint64_t, Kin> kin_;
};

}  // namespace gpuledger::attribute
