// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "attribute/estimate/estimator.h"
#include "attribute/estimate/signature_belief.h"

namespace gpuledger::attribute {

// What is known of the signatures of all processes of a GPU: of what each does now, of what it did before, and of its
// kind.
class Signatures {
 public:
  Signatures(const Constants& constants, const std::string& model)
      : constants_(constants),
        prior_(signature_prior(constants, model)),
        anybodys_variance_(inverse_of(prior_.precision)(kPower, kPower)) {}

  // A process is known as long as one of its accounts is. False: the account was there already.
  bool add_account(uint64_t account, const ProcKey& process);
  void forget(uint64_t account, const ProcKey& process);

  // Of what the process does now. One that is new starts from its kind, if that is known.
  std::shared_ptr<SignatureBelief> of(const Member& member);
  // Of what it did before, and last one of which nothing is known.
  std::vector<std::shared_ptr<SignatureBelief>> other_phases(const ProcKey& process) const;
  void begin_phase(const ProcKey& process, std::shared_ptr<SignatureBelief> belief);
  // To be called with what a process showed: once it is known well enough it speaks for the next of its kind.
  void learn_kin(uint64_t kin, const ProcKey& process, const SignatureBelief& belief);

  std::optional<double> usual_power(const ProcKey& process) const;
  EstimatorMemory memory() const;
  void recall(const EstimatorMemory& memory);

 private:
  struct Known {
    std::shared_ptr<SignatureBelief> belief;               // of what it does now
    std::vector<std::shared_ptr<SignatureBelief>> phases;  // of what it did before
    size_t accounts = 0;                                   // that are of this process
  };
  struct Kin {
    SignatureBelief belief;
    ProcKey from;  // whose it was, in that version
    uint64_t version = 0;
  };

  const Constants constants_;
  const SignaturePrior prior_;
  const double anybodys_variance_;  // of the watts, before anything is known
  std::map<ProcKey, Known> known_;
  std::map<uint64_t, ProcKey> processes_;  // by account
  std::map<uint64_t, Kin> kin_;
};

}  // namespace gpuledger::attribute
