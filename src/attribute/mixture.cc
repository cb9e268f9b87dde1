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
// Half of one sample in five: less than the driver can see of a process.
constexpr double kBusyEnoughToLearn = 0.1;
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

// Counts the samples of the present company. True when they have become so many more that what was estimated from
// the first of them is worth another look.
bool Mixture::meet(const Observed& step) {
  std::vector<ProcKey> who;
  for (const Claimant& claimant : step.who) who.push_back(claimant.process);
  if (who != company_->who || step.mps != company_->mps) {
    company_ = std::make_shared<Company>();
    company_->hits.assign(who.size(), 0.0);
    company_->who = std::move(who);
    company_->mps = step.mps;
  }
  const double before = company_->samples;
  const double drawn = step.seconds * kSamplesPerSecond;
  const double kept = before + drawn > kMostSamples ? std::max(0.0, (kMostSamples - drawn) / before) : 1;
  company_->samples = before * kept + drawn;
  for (size_t i = 0; i < step.who.size(); ++i) {
    company_->hits[i] = company_->hits[i] * kept + step.who[i].busy * drawn;
    if (step.quiet) continue;
    Signature& shape = signatures_[step.who[i].process];
    shape.note_samples(drawn, step.who[i].busy > 0);
    if (!step.mps) shape.note_ceiling(step.shown[0].value_or(1), step.who[i].busy, step.seconds);
  }
  bool milestone = false;
  for (double enough : {kSamplesToCallPassive, 4 * kSamplesToCallPassive, kMostSamples}) {
    milestone |= before < enough && company_->samples >= enough;
  }
  return milestone;
}

void Mixture::advance(const Observed& step) {
  const bool milestone = meet(step);
  for (auto& [account, claim] : claims_) claim.last = 0;
  for (const Claimant& claimant : step.who) claims_[claimant.account].process = claimant.process;
  // Quiet times say nothing of what a process does when it works.
  if (step.quiet) return;

  Record record;
  record.step = step;
  record.company = company_;
  for (const Claimant& claimant : step.who) {
    record.missed.push_back(!step.mps && signature(claimant.process).samples_missed() >= kSamplesToCallPassive);
  }
  record.parts = estimate(record);
  for (size_t i = 0; i < step.who.size(); ++i) claims_[step.who[i].account].last = record.parts[i].joules;
  book(record, 1);
  // Whoever came in the middle of this step has not shown what a whole one looks like.
  const bool whole = company_->samples > step.seconds * kSamplesPerSecond;
  if (step.who.size() >= 2) {
    records_.push_back(record);
    if (records_.size() > kMostRecords) records_.pop_front();
  }
  if (whole) learn(record);
  if (milestone) revise_company();
}

void Mixture::book(const Record& record, double sign) {
  for (size_t i = 0; i < record.step.who.size(); ++i) {
    const auto claim = claims_.find(record.step.who[i].account);
    if (claim == claims_.end()) continue;
    claim->second.sum.joules += sign * record.parts[i].joules;
    claim->second.sum.doubt += sign * record.parts[i].doubt;
  }
}

// Not caught for long, and not known to show anything: there, but not at work.
bool Mixture::passive(const Record& record, size_t claimant) const {
  return record.missed[claimant] && !signature(record.step.who[claimant].process).known();
}

Mixture::Roles Mixture::roles_of(const Record& record) const {
  Roles roles;
  std::vector<size_t> by_rest;
  for (size_t i = 0; i < record.step.who.size(); ++i) {
    const Signature& shape = signature(record.step.who[i].process);
    if (shape.known() && !shape.seen_alone()) by_rest.push_back(i);
    if (shape.known()) {
      roles.known.push_back(i);
    } else if (!passive(record, i)) {
      roles.unknown.push_back(i);
    }
  }
  // What others leave over is a better measure of the only stranger than what they left over before.
  if (roles.unknown.empty() && by_rest.size() == 1 && roles.known.size() > 1) {
    std::erase(roles.known, by_rest[0]);
    roles.unknown = std::move(by_rest);
  }
  return roles;
}

void Mixture::learn(const Record& record) {
  const Observed& step = record.step;
  const Roles roles = roles_of(record);
  const size_t active = roles.known.size() + roles.unknown.size();
  if (step.who.size() == 1 || active == 1) {
    const size_t only = step.who.size() == 1 ? 0 : roles.known.empty() ? roles.unknown[0] : roles.known[0];
    // Hardly caught: it warms up or waits, and that is not what it will do.
    if (!step.mps && step.who[only].busy < kBusyEnoughToLearn) return;
    Signature& learned = signatures_[step.who[only].process];
    learned.learn_alone(step.shown, step.who[only].busy, step.seconds);
    if (learned.worth_revising()) revise(step.who[only].process);
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
  learned.learn_from_rest(rest, step.who[newcomer].busy, step.seconds);
  if (learned.worth_revising()) revise(step.who[newcomer].process);
}

void Mixture::estimate_again(Record& record) {
  book(record, -1);
  record.parts = estimate(record);
  book(record, 1);
}

void Mixture::revise(const ProcKey& process) {
  for (Record& record : records_) {
    const auto& who = record.company->who;
    if (std::find(who.begin(), who.end(), process) != who.end()) estimate_again(record);
  }
}

void Mixture::revise_company() {
  for (Record& record : records_) {
    if (record.company == company_) estimate_again(record);
  }
}

}  // namespace gpuledger::attribute
