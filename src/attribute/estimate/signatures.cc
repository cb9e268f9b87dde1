// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/signatures.h"

#include <Eigen/Cholesky>
#include <algorithm>

namespace gpuledger::attribute {
namespace {

constexpr size_t kMostKin = 512;

SignatureMemory packed(const Belief& belief, double share) {
  SignatureMemory memory;
  const FeatureMatrix precision = belief.covariance.inverse();
  const Features shift = precision * belief.mean;
  size_t next = 0;
  for (int row = 0; row < kFeatures; ++row) {
    for (int column = 0; column <= row; ++column) memory.precision[next++] = precision(row, column);
    memory.shift[static_cast<size_t>(row)] = shift[row];
  }
  memory.share = share;
  return memory;
}

// Empty: not valid, and it is learned again.
std::optional<Belief> unpacked(const SignatureMemory& memory) {
  FeatureMatrix precision;
  Features shift;
  size_t next = 0;
  for (int row = 0; row < kFeatures; ++row) {
    for (int column = 0; column <= row; ++column)
      precision(row, column) = precision(column, row) = memory.precision[next++];
    shift[row] = memory.shift[static_cast<size_t>(row)];
  }
  const Eigen::LLT<FeatureMatrix> root(precision);
  if (!precision.allFinite() || !shift.allFinite() || root.info() != Eigen::Success) return std::nullopt;
  return Belief{root.solve(shift), root.solve(FeatureMatrix::Identity())};
}

}  // namespace

bool Signatures::add_account(uint64_t account, const ProcKey& process) {
  if (!processes_.try_emplace(account, process).second) return false;
  ++known_[process].accounts;
  return true;
}

bool Signatures::forget(uint64_t account, const ProcKey& process) {
  if (processes_.erase(account) == 0) return false;
  const auto known = known_.find(process);
  if (known == known_.end() || --known->second.accounts > 0) return false;
  known_.erase(known);
  return true;
}

Belief Signatures::expected(const ProcKey& process) const {
  const auto known = known_.find(process);
  const auto kin = known == known_.end() || known->second.kin == 0 ? kin_.end() : kin_.find(known->second.kin);
  if (kin == kin_.end()) return prior_;
  Belief belief = kin->second;
  const Features spread = (constants_.kin_spread * belief.mean.array() + constants_.reading_error).square();
  belief.covariance.diagonal() += spread;
  return belief;
}

void Signatures::note_share(const ProcKey& process, double share) {
  if (const auto known = known_.find(process); known != known_.end()) known->second.share = share;
}

// Well enough: error of the watts at most half of the prior's.
void Signatures::learn_kin(const ProcKey& process, const Explanation& explanation) {
  const auto known = known_.find(process);
  const auto id = explanation.known_signature_of(process);
  if (known == known_.end() || known->second.kin == 0 || !id) return;
  const FeatureMatrix covariance = explanation.posterior().covariance(*id);
  if (covariance(kPower, kPower) > prior_.covariance(kPower, kPower) / 4) return;
  const uint64_t kin = known->second.kin;
  if (kin_.size() >= kMostKin && !kin_.contains(kin)) kin_.erase(kin_.begin());
  kin_[kin] = {explanation.posterior().mean(*id), covariance};
}

std::optional<double> Signatures::usual_power(const ProcKey& process, const Explanation& explanation) const {
  const auto known = known_.find(process);
  const auto id = explanation.known_signature_of(process);
  if (known == known_.end() || !id) return std::nullopt;
  return std::max(0.0, explanation.posterior().mean(*id)[kPower]) * std::max(0.0, known->second.share);
}

EstimatorMemory Signatures::memory(const Explanation& explanation) const {
  EstimatorMemory memory;
  for (const auto& [process, known] : known_) {
    const auto id = explanation.known_signature_of(process);
    if (!id) continue;
    const Posterior& posterior = explanation.posterior();
    memory.signatures[process] = packed({posterior.mean(*id), posterior.covariance(*id)}, known.share);
  }
  for (const auto& [kin, belief] : kin_) memory.kin[kin] = packed(belief, -1);
  return memory;
}

void Signatures::recall(const EstimatorMemory& memory, Explanation& explanation) {
  for (const auto& [process, saved] : memory.signatures) {
    const auto belief = unpacked(saved);
    if (!belief) continue;
    explanation.signature_of(process, *belief);
    known_[process].share = saved.share;
  }
  for (const auto& [kin, saved] : memory.kin) {
    if (const auto belief = unpacked(saved)) kin_[kin] = *belief;
  }
}

}  // namespace gpuledger::attribute
