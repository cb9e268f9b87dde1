#include "attribute/mixture.h"

#include <algorithm>

namespace gpuledger::attribute {
namespace {

// Ten minutes of one-second steps in company can still be estimated again; less on a crowded GPU, to bound memory
// (16 bytes each).
constexpr size_t kMostRecords = 600;
constexpr size_t kMostParts = 16384;
// So many parts of old steps are estimated again in one step, at least one step's: a crowd's past is put right over
// some seconds, a few processes' at once.
constexpr size_t kPartsRevisedPerStep = 256;
// The driver's sampler draws five tickets a second.
constexpr double kSamplesPerSecond = 5;
// Shares of a company drift: a minute's worth of samples speaks for the present.
constexpr double kMostSamples = 60 * kSamplesPerSecond;
// Half of one sample in five: less than the driver can see of a process.
constexpr double kBusyEnoughToLearn = 0.1;
// Not caught once in so many samples: less than a ninth of the GPU's time, with 95 % certainty.
constexpr double kSamplesToCallPassive = 25;
constexpr double kMostTimeOfPassive = 1.0 / 9;
// A GPU that looks different by more than this many errors is at other work.
constexpr double kOtherLook = 4;
// Phases that are told apart; samples of those not seen for longest are forgotten.
constexpr size_t kMostLooks = 8;
// A minute of one-second steps: looks drift as shares do.
constexpr double kMostStepsOfLook = 60;
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
  if (!needed) signatures_.erase(process);
}

// Who is there now. A process that only got another account (its owner became known) is the same company.
void Mixture::gather(const Observed& step) {
  const auto all = [&](auto same) {
    return std::equal(step.who.begin(), step.who.end(), company_->who.begin(), company_->who.end(), same);
  };
  const bool same_accounts = all([](const Claimant& a, const Member& b) { return a.account == b.account; });
  if (same_accounts && step.mps == company_->mps) return;
  const bool same_processes = all([](const Claimant& a, const Member& b) { return a.process == b.process; });
  if (same_processes && step.mps == company_->mps) {
    for (auto& look : looks_) {
      look = std::make_shared<Company>(*look);  // steps of the past keep the accounts they had
      for (size_t i = 0; i < step.who.size(); ++i) look->who[i].account = step.who[i].account;
    }
  } else {
    auto company = std::make_shared<Company>();
    company->mps = step.mps;
    for (const Claimant& claimant : step.who) {
      auto& shape = signatures_[claimant.process];
      if (!shape) shape = std::make_shared<Signature>();
      company->who.push_back({claimant.account, claimant.process, shape, 0});
    }
    looks_ = {std::move(company)};
  }
  company_ = looks_.front();
}

// Finds the look that this step has, or begins one. Under MPS samples name nobody, and alone there is nobody to tell.
void Mixture::look(const Observed& step) {
  if (step.quiet || step.mps || step.who.size() < 2) return;
  if (company_->steps > 0) {
    const auto far = [&](const std::shared_ptr<Company>& one) { return distance(step.shown, one->look); };
    const auto nearest =
        std::min_element(looks_.begin(), looks_.end(), [&](const auto& a, const auto& b) { return far(a) < far(b); });
    if (far(*nearest) < kOtherLook) {
      company_ = *nearest;
      looks_.erase(nearest);
    } else {
      auto other = std::make_shared<Company>();
      other->who = company_->who;
      for (Member& member : other->who) member.hits = 0;
      company_ = std::move(other);
    }
    looks_.push_front(company_);
    if (looks_.size() > kMostLooks) looks_.pop_back();
  }
  company_->steps = std::min(company_->steps + 1, kMostStepsOfLook);
  for (size_t f = 0; f < kFeatures; ++f) {
    if (!step.shown[f]) continue;
    const double mean = company_->look[f].value_or(*step.shown[f]);
    company_->look[f] = mean + (*step.shown[f] - mean) / company_->steps;
  }
}

// Counts the samples of the present company. True when they have become so many more that what was estimated from
// the first of them is worth another look.
bool Mixture::meet(const Observed& step) {
  gather(step);
  look(step);
  const double before = company_->samples;
  const double drawn = step.seconds * kSamplesPerSecond;
  const double kept = before + drawn > kMostSamples ? std::max(0.0, (kMostSamples - drawn) / before) : 1;
  company_->samples = before * kept + drawn;
  for (size_t i = 0; i < step.who.size(); ++i) {
    Member& member = company_->who[i];
    member.hits = member.hits * kept + step.who[i].busy * drawn;
    if (step.quiet) continue;
    member.shape->note_samples(drawn, step.who[i].busy > 0);
    if (!step.mps) member.shape->note_ceiling(step.shown[0].value_or(1), step.who[i].busy, step.seconds);
  }
  // The first samples change the picture with every step, later ones slowly.
  bool milestone = before < kSamplesToCallPassive;
  for (double enough : {4 * kSamplesToCallPassive, kMostSamples}) {
    milestone |= before < enough && company_->samples >= enough;
  }
  return milestone;
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
    record.company = company_;
    for (const Member& member : company_->who) {
      record.missed.push_back(!step.mps && member.shape->samples_missed() >= kSamplesToCallPassive);
    }
    record.parts = estimate(record);
    for (size_t i = 0; i < step.who.size(); ++i) claims_[step.who[i].account].last = record.parts[i].joules;
    book(record, 1);
    keep(record);
    // Whoever came in the middle of this step has not shown what a whole one looks like.
    if (company_->samples > step.seconds * kSamplesPerSecond) learn(record, step.who);
    if (milestone) revise_company();
  }
  estimate_again();
}

// The driver can look in step with a workload and miss it for long. Caught at last while the GPU looks as it did, it
// was at work all along, and nobody was alone.
void Mixture::unlearn_false_loneliness() {
  if (!company_->learned_alone) return;
  const Lesson lesson = *company_->learned_alone;
  for (size_t i = 0; i < company_->who.size(); ++i) {
    Member& member = company_->who[i];
    if (i == lesson.learner || member.shape->seen_alone() || company_->caught(i) <= kMostTimeOfPassive) continue;
    *company_->who[lesson.learner].shape = lesson.before;
    *member.shape = Signature();  // what it left over was measured by the wrong lesson
    company_->learned_alone.reset();
    revise(member.process);
    return;
  }
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
    } else if (!record.missed[i] || record.company->caught(i) > kMostTimeOfPassive) {
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
    Signature& learned = *company_->who[only].shape;
    if (who.size() > 1 && !company_->learned_alone) company_->learned_alone = Lesson{only, learned};
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
    for (size_t k : roles.known) *rest[f] -= company_->shape(k).level(f) * explained.shares[k];
  }
  Signature& learned = *company_->who[newcomer].shape;
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
  for (Record& record : records_) record.stale |= record.company == company_;
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
