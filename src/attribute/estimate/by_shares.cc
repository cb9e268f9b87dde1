// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/by_shares.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "attribute/estimate/joint_estimator.h"

namespace gpuledger::attribute {
namespace {

// The plain formula, --attribution=utilization.
class PlainEstimator : public Estimator {
 public:
  bool observe(const Step& step) override {
    claims_.begin_step();
    if (step.members.size() > 1 && step.evidence == TimeEvidence::kNone) return false;
    charge_by_shares(step, claims_);
    return true;
  }
  Claim claim(uint64_t account) const override { return claims_.claim(account); }
  double owner_error(uint64_t owner) const override { return claims_.owner_error(owner); }
  void settle(uint64_t account, double joules, double error) override { claims_.add(account, joules, error); }
  void settle_owner(uint64_t owner, double error) override { claims_.add_owner_error(owner, error); }
  void forget_owner(uint64_t owner) override { claims_.forget_owner(owner); }
  void forget(uint64_t account, const ProcKey&) override { claims_.forget(account); }
  std::optional<double> usual_power(const ProcKey&) const override { return std::nullopt; }

 protected:
  Claims claims_;
};

// Charges no shared step, --attribution=measured-only.
class MeasuredOnlyEstimator final : public PlainEstimator {
 public:
  bool observe(const Step& step) override {
    claims_.begin_step();
    if (step.members.size() > 1) return false;
    charge_by_shares(step, claims_);
    return true;
  }
};

}  // namespace

void charge_by_shares(const Step& step, Claims& claims) {
  const size_t count = step.members.size();
  const double sum = std::accumulate(step.shares.begin(), step.shares.end(), 0.0);
  const double samples = std::max(1.0, step.seconds() * kSamplesPerSecond);
  // Worst case: one process used all the energy (a spin loop uses little). Its probability is its share of the time. A
  // process without samples may have worked too: half a sample is added to each.
  const auto error_of = [&](double share, double members) {
    const double odds = (share * samples + 0.5 * members) / (samples + 0.5 * static_cast<double>(count));
    return count > 1 ? step.dynamic_joules * std::sqrt(std::max(0.0, odds * (1 - odds))) : 0;
  };
  std::map<uint64_t, std::pair<double, double>> by_owner;  // share, members
  for (size_t i = 0; i < count; ++i) {
    const double share = sum > 0 ? step.shares[i] / sum : 1 / static_cast<double>(count);
    claims.add(step.members[i].account, step.dynamic_joules * share, error_of(share, 1));
    claims.add_last(step.members[i].account, step.dynamic_joules * share);
    by_owner[step.members[i].owner].first += share;
    by_owner[step.members[i].owner].second += 1;
  }
  for (const auto& [owner, part] : by_owner) claims.add_owner_error(owner, error_of(part.first, part.second));
}

std::unique_ptr<Estimator> make_estimator(Attribution attribution, const Constants& constants,
                                          const std::string& model) {
  switch (attribution) {
    case Attribution::kUtilization: return std::make_unique<PlainEstimator>();
    case Attribution::kMeasuredOnly: return std::make_unique<MeasuredOnlyEstimator>();
    case Attribution::kAdaptive: break;
  }
  return std::make_unique<JointEstimator>(constants, model);
}

}  // namespace gpuledger::attribute
