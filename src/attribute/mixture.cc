#include "attribute/mixture.h"

#include <algorithm>

namespace gpuledger::attribute {
namespace {

// Ten minutes of one-second steps in company can still be estimated again; less on a crowded GPU, to bound memory
// (24 bytes each).
constexpr size_t kMostRecords = 600;
constexpr size_t kMostParts = 16384;
// So many parts of old steps are estimated again in one step, at least one step's: a crowd's past is put right over
// some seconds, a few processes' at once.
constexpr size_t kPartsRevisedPerStep = 256;
// Half of one sample in five: less than the driver can see of a process.
constexpr double kBusyEnoughToLearn = 0.1;
}  // namespace

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
  if (needed) return;
  signatures_.erase(process);
  before_loneliness_.erase(process);
}

void Mixture::advance(const Observed& step) {
  const bool milestone = meet(step);
  unlearn_false_loneliness();
  for (auto& [account, claim] : claims_) claim.last = 0;
  for (const Claimant& claimant : step.who) claims_[claimant.account].process = claimant.process;
  // Quiet times say nothing of what a process does when it works.
  if (!step.quiet) {
    Record record;
    record.step = step;
    record.company = looks_.front();
    for (const Member& member : present().who) {
      record.missed.push_back(step.mps ? 0 : member.shape->samples_missed());
    }
    record.parts = estimate(record);
    for (size_t i = 0; i < step.who.size(); ++i) claims_[step.who[i].account].last = record.parts[i].joules;
    book(record, 1);
    keep(record);
    // Whoever came in the middle of this step has not shown what a whole one looks like.
    if (present().samples > step.seconds * kSamplesPerSecond) learn(record, step.who);
    if (milestone) revise_company();
  }
  estimate_again();
}

void Mixture::book(const Record& record, double sign) {
  for (size_t i = 0; i < record.parts.size(); ++i) {
    const auto claim = claims_.find(record.company->who[i].account);
    if (claim == claims_.end()) continue;
    claim->second.sum.joules += sign * record.parts[i].joules;
    claim->second.sum.doubt += sign * record.parts[i].doubt;
  }
}

void Mixture::keep(const Record& record) {
  if (record.parts.size() < 2) return;  // nothing to estimate
  records_.push_back(record);
  parts_kept_ += record.parts.size();
  while (records_.size() > kMostRecords || (parts_kept_ > kMostParts && records_.size() > 1)) {
    parts_kept_ -= records_.front().parts.size();
    records_.pop_front();
  }
}

Mixture::Roles Mixture::roles_of(const Record& record) const {
  Roles roles;
  std::vector<size_t> by_rest;
  for (size_t i = 0; i < record.company->who.size(); ++i) {
    const Signature& shape = record.company->shape(i);
    if (shape.known() && !shape.seen_alone()) by_rest.push_back(i);
    if (shape.known()) {
      roles.known.push_back(i);
    } else if (record.missed[i] < kSamplesToCallPassive || record.company->caught(i) > kMostTimeOfPassive) {
      roles.unknown.push_back(i);  // else not caught for long, and not known to show anything: there, but not at work
    }
  }
  // What others leave over is a better measure of the only stranger than what they left over before.
  if (roles.unknown.empty() && by_rest.size() == 1 && roles.known.size() > 1) {
    std::erase(roles.known, by_rest[0]);
    roles.unknown = std::move(by_rest);
  }
  return roles;
}

void Mixture::learn(const Record& record, const std::vector<Claimant>& who) {
  const Scene& step = record.step;
  const Roles roles = roles_of(record);
  const size_t active = roles.known.size() + roles.unknown.size();
  if (who.size() == 1 || active == 1) {
    const size_t only = who.size() == 1 ? 0 : roles.known.empty() ? roles.unknown[0] : roles.known[0];
    // Hardly caught: it warms up or waits, and that is not what it will do.
    if (!step.mps && who[only].busy < kBusyEnoughToLearn) return;
    Signature& learned = *present().who[only].shape;
    if (who.size() > 1) {
      present().lonely = only;
      before_loneliness_.emplace(who[only].process, learned);  // unless it was lonely before
    } else {
      before_loneliness_.erase(who[only].process);  // now it is certain
    }
    learned.learn_alone(step.shown, who[only].busy, step.seconds);
    if (learned.worth_revising()) revise(who[only].process);
    return;
  }
  if (roles.unknown.size() != 1) return;
  const size_t newcomer = roles.unknown[0];
  if (!step.mps && who[newcomer].busy < kBusyEnoughToLearn) return;
  const Fit explained = fit(record, roles);
  Features rest = step.shown;
  for (size_t f = 0; f < kFeatures; ++f) {
    if (!rest[f]) continue;
    for (size_t k : roles.known) *rest[f] -= present().shape(k).level(f) * explained.shares[k];
  }
  Signature& learned = *present().who[newcomer].shape;
  learned.learn_from_rest(rest, who[newcomer].busy, step.seconds);
  if (learned.worth_revising()) revise(who[newcomer].process);
}

void Mixture::revise(const ProcKey& process) {
  const Company* last = nullptr;
  bool there = false;
  for (Record& record : records_) {
    if (record.company.get() != last) {
      last = record.company.get();
      there = std::any_of(last->who.begin(), last->who.end(), [&](const Member& m) { return m.process == process; });
    }
    record.stale |= there;
  }
}

void Mixture::revise_company() {
  for (Record& record : records_) record.stale |= record.company == looks_.front();
}

// From the newest to the oldest and round again, so that none waits for ever.
void Mixture::estimate_again() {
  size_t parts = 0;
  for (size_t looked = 0; looked < records_.size() && parts < kPartsRevisedPerStep; ++looked) {
    if (next_age_ >= records_.size()) next_age_ = 0;
    Record& record = records_[records_.size() - 1 - next_age_++];
    if (!record.stale) continue;
    record.stale = false;
    parts += record.parts.size();
    book(record, -1);
    record.parts = estimate(record);
    book(record, 1);
  }
}

}  // namespace gpuledger::attribute
