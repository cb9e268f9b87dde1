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

double facts_of(const Roster::Seat& seat) {
  return seat.facts + kLeastFacts;
}

double sum_of_facts(const std::vector<Roster::Seat>& seats) {
  double sum = 0;
  for (const Roster::Seat& seat : seats) sum += facts_of(seat);
  return sum;
}

std::shared_ptr<Roster> make_roster(const WindowInput& input, Signatures& signatures) {
  auto roster = std::make_shared<Roster>();
  roster->mps = input.mps;
  roster->at = input.end;
  roster->seats.reserve(input.parts.size());
  for (const auto& part : input.parts) {
    Roster::Seat& seat = roster->seats.emplace_back();
    seat.account = part.member.account;
    seat.owner = part.member.owner;
    seat.process = part.member.process;
    seat.belief = signatures.of(part.member);
  }
  roster->by_owner.resize(roster->seats.size());
  std::iota(roster->by_owner.begin(), roster->by_owner.end(), 0);
  std::sort(roster->by_owner.begin(), roster->by_owner.end(),
            [&](uint32_t a, uint32_t b) { return roster->seats[a].owner < roster->seats[b].owner; });
  return roster;
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
      std::equal(found->seats.begin(), found->seats.end(), input.parts.begin(), input.parts.end(), same)) {
    return found;
  }
  const std::shared_ptr<Roster> roster = make_roster(input, signatures);
  place = roster;
  if (rosters_.size() > kMostBeforeCleaning)
    std::erase_if(rosters_, [](const auto& entry) { return entry.second.expired(); });
  return roster;
}

void Rosters::add_samples(const WindowInput& input, Roster& roster) const {
  const double kept = std::exp(-input.seconds() / constants_.share_memory);
  roster.at = input.end;
  for (size_t i = 0; i < roster.seats.size(); ++i) {
    Roster::Seat& seat = roster.seats[i];
    seat.facts = seat.facts * kept + input.parts[i].samples / constants_.samples_per_fact;
  }
}

void Rosters::weigh_shares(Window& window) {
  const std::vector<Roster::Seat>& seats = window.roster->seats;
  const double sum = sum_of_facts(seats);
  for (size_t i = 0; i < seats.size(); ++i) {
    const double share = facts_of(seats[i]) / sum;
    window.parts[i].share = share;
    window.parts[i].share_variance = share * (1 - share) / (sum + 1);
  }
}

bool Rosters::shares_moved(const Window& window) {
  constexpr double kMaterial = 0.02;  // of the time
  const std::vector<Roster::Seat>& seats = window.roster->seats;
  const double sum = sum_of_facts(seats);
  for (size_t i = 0; i < seats.size(); ++i) {
    if (std::abs(facts_of(seats[i]) / sum - window.parts[i].share) > kMaterial) return true;
  }
  return false;
}

}  // namespace gpuledger::attribute
