#include "attribute/mixture.h"

#include <algorithm>

namespace gpuledger::attribute {
namespace {

// Ten minutes of one-second steps in company can still be estimated again.
constexpr size_t kMostRecords = 600;
// The driver's sampler draws five tickets a second.
constexpr double kSamplesPerSecond = 5;
// Shares of a company drift: a minute's worth of samples speaks for the present.
constexpr double kMostSamples = 60 * kSamplesPerSecond;
// Not caught once in so many samples: less than a ninth of the GPU's time, with 95 % certainty.
constexpr double kSamplesToCallPassive = 25;
}  // namespace

const Signature& Mixture::signature(const ProcKey& process) const {
  static const Signature nothing_known;
  const auto found = signatures_.find(process);
  return found == signatures_.end() ? nothing_known : found->second;
}

double Mixture::fair(uint64_t account) const {
  const auto claim = claims_.find(account);
  return claim == claims_.end() ? 0 : claim->second.sum.joules;
}

double Mixture::doubt(uint64_t account) const {
  const auto claim = claims_.find(account);
  return claim == claims_.end() ? 0 : std::max(0.0, claim->second.sum.doubt);
}

double Mixture::last_part(uint64_t account) const {
  const auto claim = claims_.find(account);
  return claim == claims_.end() ? 0 : claim->second.last;
}

void Mixture::settle(uint64_t account, const ProcKey& process, double joules) {
  Claim& claim = claims_[account];
  claim.process = process;
  claim.sum.joules += joules;
}

void Mixture::forget(uint64_t account) {
  const auto claim = claims_.find(account);
  if (claim == claims_.end()) return;
  const ProcKey process = claim->second.process;
  claims_.erase(claim);
  const bool needed =
      std::any_of(claims_.begin(), claims_.end(), [&](const auto& entry) { return entry.second.process == process; });
  if (!needed) signatures_.erase(process);
}

// Who was there, and how often each was caught while this company lasts.
void Mixture::meet(const Observed& step) {
  std::vector<ProcKey> who;
  for (const Claimant& claimant : step.who) who.push_back(claimant.process);
  if (who != company_.who || step.mps != company_.mps) {
    company_ = {std::move(who), step.mps, std::vector<double>(step.who.size(), 0.0), 0};
  }
  const double samples = step.seconds * kSamplesPerSecond;
  const double kept = company_.samples + samples > kMostSamples ? (kMostSamples - samples) / company_.samples : 1;
  company_.samples = company_.samples * std::max(0.0, kept) + samples;
  for (size_t i = 0; i < step.who.size(); ++i) {
    company_.caught[i] = company_.caught[i] * std::max(0.0, kept) + step.who[i].busy * samples;
  }
}

void Mixture::advance(const Observed& step) {
  meet(step);
  for (auto& [account, claim] : claims_) claim.last = 0;
  for (const Claimant& claimant : step.who) claims_[claimant.account].process = claimant.process;
  // Quiet times say nothing of what a process does when it works.
  if (step.quiet) return;

  Record record;
  record.step = step;
  record.samples = company_.samples;
  for (double caught : company_.caught) record.caught.push_back(company_.samples > 0 ? caught / company_.samples : 0);
  record.parts = estimate(record);
  for (size_t i = 0; i < step.who.size(); ++i) claims_[step.who[i].account].last = record.parts[i].joules;
  book(record, 1);
  learn(record);
  if (step.who.size() < 2) return;
  records_.push_back(std::move(record));
  if (records_.size() > kMostRecords) records_.pop_front();
}

void Mixture::book(const Record& record, double sign) {
  for (size_t i = 0; i < record.step.who.size(); ++i) {
    const auto claim = claims_.find(record.step.who[i].account);
    if (claim == claims_.end()) continue;
    claim->second.sum.joules += sign * record.parts[i].joules;
    claim->second.sum.doubt += sign * record.parts[i].doubt;
  }
}

// Never caught and never known to show anything: there, but not at work.
bool Mixture::passive(const Record& record, size_t claimant) const {
  return !record.step.mps && record.samples >= kSamplesToCallPassive && record.caught[claimant] <= 0 &&
         !signature(record.step.who[claimant].process).known();
}

Mixture::Roles Mixture::roles_of(const Record& record) const {
  Roles roles;
  for (size_t i = 0; i < record.step.who.size(); ++i) {
    if (signature(record.step.who[i].process).known()) {
      roles.known.push_back(i);
    } else if (!passive(record, i)) {
      roles.unknown.push_back(i);
    }
  }
  return roles;
}

void Mixture::learn(const Record& record) {
  const Observed& step = record.step;
  const Roles roles = roles_of(record);
  const size_t active = roles.known.size() + roles.unknown.size();
  if (step.who.size() == 1 || active == 1) {
    const size_t only = step.who.size() == 1 ? 0 : roles.known.empty() ? roles.unknown[0] : roles.known[0];
    Signature& learned = signatures_[step.who[only].process];
    const bool was_known = learned.known() && learned.seen_alone();
    learned.learn_alone(step.shown, step.who[only].busy, step.seconds);
    if (!was_known || learned.reached_milestone()) revise(step.who[only].process);
    return;
  }
  if (roles.unknown.size() != 1) return;
  const size_t newcomer = roles.unknown[0];
  const Fit explained = fit(record, roles);
  Features rest = step.shown;
  for (size_t f = 0; f < kFeatures; ++f) {
    if (!rest[f]) continue;
    for (size_t k : roles.known) *rest[f] -= signature(step.who[k].process).level(f) * explained.shares[k];
  }
  Signature& learned = signatures_[step.who[newcomer].process];
  const bool was_known = learned.known();
  learned.learn_from_rest(rest, step.who[newcomer].busy, step.seconds);
  if (!was_known && learned.known()) revise(step.who[newcomer].process);
}

void Mixture::revise(const ProcKey& process) {
  for (Record& record : records_) {
    const auto& who = record.step.who;
    if (std::none_of(who.begin(), who.end(), [&](const Claimant& c) { return c.process == process; })) continue;
    book(record, -1);
    record.parts = estimate(record);
    book(record, 1);
  }
}

}  // namespace gpuledger::attribute
