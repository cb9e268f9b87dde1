// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/rosters.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpuledger::attribute {
namespace {

constexpr size_t kMostBeforeCleaning = 1200;
// Before the first sample every process may work.
constexpr double kLeastFacts = 0.02;

double with_least(double facts) {
  return facts + kLeastFacts;
}

double sum_of_facts(const Roster& roster) {
  double sum = 0;
  for (const double facts : roster.facts) sum += with_least(facts);
  return sum;
}

std::shared_ptr<const Roster::Table> make_table(const WindowInput& input, Signatures& signatures) {
  auto table = std::make_shared<Roster::Table>();
  table->seats.reserve(input.parts.size());
  for (const auto& part : input.parts) {
    table->seats.push_back({part.member.account, part.member.owner, part.member.process, signatures.of(part.member)});
  }
  table->by_owner.resize(table->seats.size());
  std::iota(table->by_owner.begin(), table->by_owner.end(), 0);
  std::sort(table->by_owner.begin(), table->by_owner.end(),
            [&](uint32_t a, uint32_t b) { return table->seats[a].owner < table->seats[b].owner; });
  return table;
}

std::shared_ptr<Roster> make_roster(const WindowInput& input, std::shared_ptr<const Roster::Table> table) {
  auto roster = std::make_shared<Roster>();
  roster->mps = input.mps;
  roster->at = input.end;
  roster->facts.resize(table->seats.size());
  roster->table = std::move(table);
  return roster;
}

bool same_seats(const Roster::Table& table, const WindowInput& input) {
  const auto same = [](const Roster::Seat& seat, const WindowInput::Part& part) {
    return seat.account == part.member.account && seat.owner == part.member.owner &&
           seat.process == part.member.process;
  };
  return std::equal(table.seats.begin(), table.seats.end(), input.parts.begin(), input.parts.end(), same);
}

}  // namespace

std::shared_ptr<Roster> Rosters::of(const WindowInput& input, Signatures& signatures) {
  std::vector<const void*> key;
  key.reserve(input.parts.size() + 1);
  key.push_back(input.mps ? this : nullptr);
  for (const auto& part : input.parts) key.push_back(signatures.of(part.member).get());
  std::weak_ptr<Roster>& place = rosters_[key];
  std::shared_ptr<Roster> found = place.lock();
  // A process that only got another account (its owner became known) begins a new roster too.
  const auto same = [](const Roster::Seat& seat, const WindowInput::Part& part) {
    return seat.account == part.member.account;
  };
  if (found && !found->over &&
      std::equal(found->seats().begin(), found->seats().end(), input.parts.begin(), input.parts.end(), same)) {
    return found;
  }
  const bool shared = found && same_seats(*found->table, input);
  const std::shared_ptr<Roster> roster = make_roster(input, shared ? found->table : make_table(input, signatures));
  place = roster;
  if (rosters_.size() > kMostBeforeCleaning)
    std::erase_if(rosters_, [](const auto& entry) { return entry.second.expired(); });
  return roster;
}

void Rosters::add_samples(const WindowInput& input, Roster& roster) const {
  const double kept = std::exp(-input.seconds() / constants_.share_memory);
  roster.at = input.end;
  for (size_t i = 0; i < roster.facts.size(); ++i) {
    roster.facts[i] = roster.facts[i] * kept + input.parts[i].samples / constants_.samples_per_fact;
  }
}

void Rosters::weigh_shares(Window& window) {
  const std::vector<double>& facts = window.roster->facts;
  const double sum = sum_of_facts(*window.roster);
  for (size_t i = 0; i < facts.size(); ++i) {
    const double share = with_least(facts[i]) / sum;
    window.parts[i].share = share;
    window.parts[i].share_variance = share * (1 - share) / (sum + 1);
  }
}

bool Rosters::shares_moved(const Window& window) {
  constexpr double kMaterial = 0.02;  // of the time
  const std::vector<double>& facts = window.roster->facts;
  const double sum = sum_of_facts(*window.roster);
  for (size_t i = 0; i < facts.size(); ++i) {
    if (std::abs(with_least(facts[i]) / sum - window.parts[i].share) > kMaterial) return true;
  }
  return false;
}

}  // namespace gpuledger::attribute
