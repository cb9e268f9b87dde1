// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <unordered_map>

#include "attribute/estimate/estimator.h"

namespace gpuledger::attribute {

// The sums of every estimator. Errors are systematic (a wrong signature, a wrong share), so they add up and do not
// cancel.
class Claims {
 public:
  void begin_step() {
    for (auto& [account, claim] : claims_) claim.last_joules = 0;
  }
  void add(uint64_t account, double joules, double error) {
    Claim& claim = claims_[account];
    claim.joules += joules;
    claim.error += error;
  }
  // Ignores claims that were forgotten.
  void correct(uint64_t account, double joules, double error) {
    const auto found = claims_.find(account);
    if (found == claims_.end()) return;
    found->second.joules += joules;
    found->second.error += error;
  }
  void add_last(uint64_t account, double joules) { claims_[account].last_joules += joules; }
  // Ignores claims that were forgotten.
  void add_seconds(uint64_t account, double seconds, bool traced) {
    const auto found = claims_.find(account);
    if (found == claims_.end()) return;
    found->second.seconds = found->second.seconds.value_or(0) + seconds;
    found->second.traced = traced;
  }
  void add_owner_error(uint64_t owner, double error) { owner_errors_[owner] += error; }
  void forget(uint64_t account) { claims_.erase(account); }
  void forget_owner(uint64_t owner) { owner_errors_.erase(owner); }

  Claim claim(uint64_t account) const {
    const auto found = claims_.find(account);
    if (found == claims_.end()) return {};
    Claim claim = found->second;
    claim.error = std::max(0.0, claim.error);
    return claim;
  }
  double owner_error(uint64_t owner) const {
    const auto found = owner_errors_.find(owner);
    return found == owner_errors_.end() ? 0 : std::max(0.0, found->second);
  }

 private:
  std::unordered_map<uint64_t, Claim> claims_;
  std::unordered_map<uint64_t, double> owner_errors_;
};

}  // namespace gpuledger::attribute
