// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/signatures.h"

#include <Eigen/Cholesky>
#include <algorithm>

namespace gpuledger::attribute {
namespace {

constexpr size_t kMostEarlier = 4;
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

void Signatures::forget(uint64_t account, const ProcKey& process) {
  if (processes_.erase(account) == 0) return;
  const auto known = known_.find(process);
  if (known != known_.end() && --known->second.accounts == 0) known_.erase(known);
}

SignatureId Signatures::of(const Member& member, Posterior& posterior) {
  Known& known = known_[member.process];
  if (!known.now) {
    const auto kin = member.kin == 0 ? kin_.end() : kin_.find(member.kin);
    Belief belief = kin == kin_.end() ? prior_ : kin->second;
    if (kin != kin_.end()) {
      const Features spread = (constants_.kin_spread * belief.mean.array() + constants_.reading_error).square();
      belief.covariance.diagonal() += spread;
    }
    known.now = posterior.add(belief);
  }
  return *known.now;
}

std::vector<SignatureId> Signatures::earlier(const ProcKey& process) const {
  const auto known = known_.find(process);
  return known == known_.end() ? std::vector<SignatureId>() : known->second.earlier;
}

void Signatures::change(const ProcKey& process, SignatureId now) {
  Known& known = known_[process];
  std::erase(known.earlier, now);
  if (known.now) known.earlier.push_back(*known.now);
  known.now = now;
  if (known.earlier.size() > kMostEarlier) known.earlier.erase(known.earlier.begin());
}

void Signatures::add_used(std::set<SignatureId>& used) const {
  for (const auto& [process, known] : known_) {
    if (known.now) used.insert(*known.now);
    used.insert(known.earlier.begin(), known.earlier.end());
  }
}

void Signatures::note_share(const ProcKey& process, double share) {
  if (const auto known = known_.find(process); known != known_.end()) known->second.share = share;
}

// Well enough: error of the watts at most half of the prior's.
void Signatures::learn_kin(uint64_t kin, SignatureId id, const Posterior& posterior) {
  if (kin == 0) return;
  const FeatureMatrix covariance = posterior.covariance(id);
  if (covariance(kPower, kPower) > prior_.covariance(kPower, kPower) / 4) return;
  if (kin_.size() >= kMostKin && !kin_.contains(kin)) kin_.erase(kin_.begin());
  kin_[kin] = {posterior.mean(id), covariance};
}

std::optional<double> Signatures::usual_power(const ProcKey& process, const Posterior& posterior) const {
  const auto known = known_.find(process);
  if (known == known_.end() || !known->second.now) return std::nullopt;
  return std::max(0.0, posterior.mean(*known->second.now)[kPower]) * std::max(0.0, known->second.share);
}

EstimatorMemory Signatures::memory(const Posterior& posterior) const {
  EstimatorMemory memory;
  for (const auto& [process, known] : known_) {
    if (known.now)
      memory.signatures[process] = packed({posterior.mean(*known.now), posterior.covariance(*known.now)}, known.share);
  }
  for (const auto& [kin, belief] : kin_) memory.kin[kin] = packed(belief, -1);
  return memory;
}

void Signatures::recall(const EstimatorMemory& memory, Posterior& posterior) {
  for (const auto& [process, saved] : memory.signatures) {
    const auto belief = unpacked(saved);
    if (!belief) continue;
    Known& known = known_[process];
    known.now = posterior.add(*belief);
    known.share = saved.share;
  }
  for (const auto& [kin, saved] : memory.kin) {
    if (const auto belief = unpacked(saved)) kin_[kin] = *belief;
  }
}

}  // namespace gpuledger::attribute
