#include <algorithm>
#include <cmath>
#include <numeric>

#include "attribute/mixture.h"
#include "attribute/unmix.h"

// The part of the mixture that estimates one step from what is known now.
namespace gpuledger::attribute {
namespace {

// The driver rounds to percent and samples in step with some workloads.
constexpr double kSampleError = 0.035;
// A company that misses what is shown by more than this many errors has somebody in it who changed.
constexpr double kMisfitOfChange = 2.5;
// How many are tried in turn as the one who did: more than usually work at one time, few enough for a crowd.
constexpr size_t kMostSuspects = 8;
// Joules per unit of work are not quite constant: what known loads were off by, side by side, on an H200.
constexpr double kDoubtOfKnown = 0.06;
// Somebody known only by what others left over carries their errors too.
constexpr double kDoubtOfRest = 0.15;
// The watts of what known ones explained are off by so much, and what they leave over with them.
constexpr double kDoubtOfExplained = 0.12;
// The static watts move by a few watts with the temperature: this part of the limit.
constexpr double kDoubtOfStatic = 0.004;
// Where the line between the known and the unknown runs is an assumption (the known ones did what they could).
constexpr double kDoubtOfUnknown = 0.3;

double error_of_samples(double share, double samples) {
  return kSampleError + std::sqrt(share * (1 - share) / std::max(1.0, samples));
}

}  // namespace

Mixture::Fit Mixture::fit(const Record& record, const Roles& roles) const {
  const Scene& step = record.step;
  const Company& company = *record.company;
  // Under MPS no sample says whose time it was: all who are there count alike.
  double strangers_time = 0;
  for (size_t u : roles.unknown) {
    strangers_time += step.mps ? 1.0 / static_cast<double>(roles.known.size() + roles.unknown.size())
                               : company.probable_time(u, record.missed[u]);
  }
  std::vector<Clue> clues;
  std::vector<Source> sources(roles.known.size());
  for (size_t f = 0; f < kFeatures; ++f) {
    if (!step.shown[f]) continue;
    for (size_t i = 0; i < sources.size(); ++i) sources[i].parts[clues.size()] = company.shape(roles.known[i]).level(f);
    const double error = error_of(f, std::max(0.0, *step.shown[f]));
    // Of a stranger's second is expected what a second of this GPU shows on average, give or take all of it.
    clues.push_back({*step.shown[f], error, std::hypot(error, strangers_time * *step.shown[f])});
  }
  constexpr size_t kSm = 1 + Activity::kSm;
  constexpr size_t kWarps = 1 + Activity::kOccupancy;
  if (!roles.unknown.empty() && !step.mps && step.shown[kSm] && step.shown[kWarps]) {
    // Warps sit on SMs that work, the strangers' too: known ones must leave them as many SMs as warps.
    for (size_t i = 0; i < sources.size(); ++i) {
      const Signature& shape = company.shape(roles.known[i]);
      sources[i].parts[clues.size()] = shape.level(kSm) - shape.level(kWarps);
    }
    const double error = std::hypot(error_of(kSm, *step.shown[kSm]), error_of(kWarps, *step.shown[kWarps]));
    clues.push_back({*step.shown[kSm] - *step.shown[kWarps], error, kNoMatter});
  }
  // One sample catches one: those that caught strangers also say what all known ones together did not have. Each known
  // one by itself could have been unlucky, but not all of them. (Of one alone it is the same clue as its own.)
  if (!roles.unknown.empty() && !step.mps && sources.size() > 1) {
    double caught = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      sources[i].parts[clues.size()] = company.shape(roles.known[i]).busy();
      caught += company.caught(roles.known[i]);
    }
    const double error = error_of_samples(std::min(1.0, strangers_time), company.samples);
    clues.push_back({caught, error, error});
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    const size_t k = roles.known[i];
    sources[i].highest = company.shape(k).highest_share();
    if (step.mps) continue;
    sources[i].own_part = company.shape(k).busy();
    sources[i].own_seen = company.caught(k);
    sources[i].own_error = error_of_samples(company.probable_time(k, record.missed[k]), company.samples);
  }
  const Unmixed unmixed = unmix(clues, sources);
  Fit result;
  result.shares.assign(company.who.size(), 0.0);
  for (size_t i = 0; i < sources.size(); ++i) result.shares[roles.known[i]] = unmixed.shares[i];
  result.misfit = unmixed.misfit;
  return result;
}

// Known, but not as it is now: those known only by what others left them, if they are several; else the one without
// whose signature the others explain the step best.
Mixture::Roles Mixture::with_changed_one(const Record& record, const Roles& roles, Fit& best) const {
  const Company& company = *record.company;
  Roles chosen;
  for (size_t k : roles.known) (company.shape(k).seen_alone() ? chosen.known : chosen.unknown).push_back(k);
  if (chosen.unknown.size() > 1) {
    best = fit(record, chosen);
    return chosen;
  }
  // Who is hardly there cannot have changed the picture: in a crowd only the busiest are looked at.
  std::vector<size_t> suspects = roles.known;
  const auto busier = [&](size_t a, size_t b) {
    return company.caught(a) + best.shares[a] > company.caught(b) + best.shares[b];
  };
  if (suspects.size() > kMostSuspects) {
    std::partial_sort(suspects.begin(), suspects.begin() + kMostSuspects, suspects.end(), busier);
    suspects.resize(kMostSuspects);
  }
  chosen = roles;
  for (size_t changed : suspects) {
    Roles without = roles;
    std::erase(without.known, changed);
    without.unknown = {changed};
    Fit other = fit(record, without);
    if (other.misfit >= best.misfit) continue;
    best = std::move(other);
    chosen = std::move(without);
  }
  return chosen;
}

// Several unknown ones share the rest by the driver's samples, but none gets more than it can have cost. One of them
// may have burned it all, with odds like their time: that is the doubt.
void Mixture::divide_rest(const Record& record, const Roles& roles, double rest, std::vector<Part>& parts) const {
  const Scene& step = record.step;
  std::vector<double> weights;
  std::vector<double> most;
  for (size_t u : roles.unknown) {
    weights.push_back(step.mps ? 1.0 : record.company->probable_time(u, record.missed[u]));
    most.push_back(record.company->shape(u).ceiling() * step.full_watts * step.seconds);
  }
  std::vector<double> shares(weights.size(), 0.0);
  double left = rest;
  for (size_t round = 0; round < weights.size() && left > 0; ++round) {
    double open = 0;
    for (size_t i = 0; i < weights.size(); ++i) open += shares[i] < most[i] ? weights[i] : 0;
    // All at their ceilings: somebody changed its ways, and time must do.
    const bool all_full = open <= 0;
    const double sum = all_full ? std::accumulate(weights.begin(), weights.end(), 0.0) : open;
    double given = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (!all_full && shares[i] >= most[i]) continue;
      const double wanted = left * weights[i] / sum;
      const double part = all_full ? wanted : std::min(wanted, most[i] - shares[i]);
      shares[i] += part;
      given += part;
    }
    left -= given;
    if (all_full) break;
  }
  const double all = std::max(1e-9, std::accumulate(shares.begin(), shares.end(), 0.0));
  for (size_t i = 0; i < shares.size(); ++i) {
    const double share = shares[i] / all;
    parts[roles.unknown[i]].joules = rest * share;
    parts[roles.unknown[i]].doubt = rest * std::sqrt(share * (1 - share));
  }
}

std::vector<Mixture::Part> Mixture::estimate(const Record& record) const {
  const Scene& step = record.step;
  const Company& company = *record.company;
  const double joules = step.dynamic_joules;
  std::vector<Part> parts(company.who.size());
  if (parts.empty() || joules <= 0) return parts;
  if (parts.size() == 1) {
    parts[0].joules = joules;
    return parts;
  }
  Roles roles = roles_of(record);
  if (roles.known.empty() && roles.unknown.empty()) {
    for (size_t i = 0; i < parts.size(); ++i) roles.unknown.push_back(i);
  }
  Fit fitted = fit(record, roles);
  if (roles.unknown.empty() && fitted.misfit > kMisfitOfChange) roles = with_changed_one(record, roles, fitted);

  double explained = 0;
  // Under MPS no sample says who works, and they share the GPU at one moment, not in turns.
  double company_doubt = step.mps ? kDoubtOfUnknown : kDoubtOfKnown;
  for (size_t k : roles.known) {
    if (!company.shape(k).seen_alone()) company_doubt = std::max(company_doubt, kDoubtOfRest);
    parts[k].joules = fitted.shares[k] * company.shape(k).level(0) * step.full_watts * step.seconds;
    explained += parts[k].joules;
  }
  if (explained <= 0 && roles.unknown.empty()) {
    roles.unknown = std::move(roles.known);  // nobody known explains it: their time must do
    roles.known.clear();
  }
  // Known ones alone have used it all, whatever their watts add up to; beside unknown ones they never have more.
  const double ratio = explained > 0 && (roles.unknown.empty() || explained > joules) ? joules / explained : 1;
  const double misses = explained > 0 ? std::abs(1 - joules / explained) : 0;
  const double known = explained * ratio;
  const double rest = std::max(0.0, joules - known);
  // What is left over carries the whole error of what was taken away, however little it is.
  const double doubt_of_rest = std::hypot(kDoubtOfUnknown * std::min(known, rest), kDoubtOfExplained * known);
  if (!roles.unknown.empty()) divide_rest(record, roles, rest, parts);
  for (size_t k : roles.known) {
    parts[k].joules *= ratio;
    const double movable = std::min(parts[k].joules, joules - parts[k].joules);
    parts[k].doubt = movable * (company_doubt + (roles.unknown.empty() ? 0.5 * std::min(1.0, misses) : 0));
    if (!roles.unknown.empty() && known > 0) parts[k].doubt += doubt_of_rest * parts[k].joules / known;
  }
  if (!roles.known.empty() && rest > 0) {
    for (size_t u : roles.unknown) parts[u].doubt += doubt_of_rest * parts[u].joules / rest;
  }
  const double calm = kDoubtOfStatic * step.full_watts * step.seconds;
  for (size_t i : roles.known) parts[i].doubt += calm;
  for (size_t i : roles.unknown) parts[i].doubt += calm;
  return parts;
}

}  // namespace gpuledger::attribute
