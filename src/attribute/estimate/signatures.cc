// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/signatures.h"

#include <algorithm>
#include <utility>

namespace gpuledger::attribute {
namespace {

constexpr size_t kMostPhases = 4;
constexpr size_t kMostKin = 512;

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

std::shared_ptr<SignatureBelief> Signatures::of(const Member& member) {
  Known& known = known_[member.process];
  if (known.belief) return known.belief;
  const auto kin = member.kin == 0 ? kin_.end() : kin_.find(member.kin);
  known.belief =
      std::make_shared<SignatureBelief>(kin == kin_.end() ? prior_ : kin_prior(kin->second.belief, constants_));
  return known.belief;
}

std::vector<std::shared_ptr<SignatureBelief>> Signatures::other_phases(const ProcKey& process) const {
  std::vector<std::shared_ptr<SignatureBelief>> phases;
  if (const auto known = known_.find(process); known != known_.end()) phases = known->second.phases;
  phases.push_back(std::make_shared<SignatureBelief>(prior_));
  return phases;
}

void Signatures::begin_phase(const ProcKey& process, std::shared_ptr<SignatureBelief> belief) {
  Known& known = known_[process];
  belief->share = known.belief->share;
  std::erase(known.phases, belief);
  known.phases.push_back(std::exchange(known.belief, std::move(belief)));
  if (known.phases.size() > kMostPhases) known.phases.erase(known.phases.begin());
}

// Well enough: error of the watts at most half of the prior's.
void Signatures::learn_kin(uint64_t kin, const ProcKey& process, const SignatureBelief& belief) {
  if (kin == 0) return;
  if (belief.moments().covariance(kPower, kPower) > anybodys_variance_ / 4) return;
  const auto last = kin_.find(kin);
  // Copies are large, and in most windows most beliefs do not change.
  if (last != kin_.end() && last->second.from == process && last->second.version == belief.version()) return;
  if (kin_.size() >= kMostKin && last == kin_.end()) kin_.erase(kin_.begin());
  kin_.insert_or_assign(kin, Kin{belief, process, belief.version()});
}

std::optional<double> Signatures::usual_power(const ProcKey& process) const {
  const auto known = known_.find(process);
  if (known == known_.end() || !known->second.belief) return std::nullopt;
  const SignatureBelief& belief = *known->second.belief;
  return belief.moments().mean[kPower] * std::max(0.0, belief.share);
}

EstimatorMemory Signatures::memory() const {
  EstimatorMemory memory;
  for (const auto& [process, known] : known_) {
    if (known.belief) memory.signatures[process] = known.belief->memory();
  }
  for (const auto& [kin, known] : kin_) memory.kin[kin] = known.belief.memory();
  return memory;
}

void Signatures::recall(const EstimatorMemory& memory) {
  for (const auto& [process, saved] : memory.signatures) {
    known_[process].belief = std::make_shared<SignatureBelief>(prior_, saved);
  }
  for (const auto& [kin, saved] : memory.kin) kin_.insert_or_assign(kin, Kin{SignatureBelief(prior_, saved), {}, 0});
}

}  // namespace gpuledger::attribute
