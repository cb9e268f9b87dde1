// SPDX-License-Identifier: Apache-2.0
#include "expose/json_limit.h"

#include <map>
#include <set>
#include <tuple>

#include "expose/spending.h"

namespace gpuledger::expose {
namespace {

// Unlike the text, the JSON has the UUIDs of GPUs, so that a card that was swapped has closed accounts of its own.
using Key = std::tuple<Name, OwnerKind, Name>;

Key key_of(const OwnerAccount& account) {
  return {account.gpu.text, account.owner.kind, account.owner.name_space};
}

template <typename Account>
std::vector<const Account*> pointers_to(const std::vector<Account>& accounts) {
  std::vector<const Account*> pointers;
  pointers.reserve(accounts.size());
  for (const Account& account : accounts) pointers.push_back(&account);
  return pointers;
}

// Most closed accounts that left out owners can add.
size_t room_for_closed(const Ledger& ledger) {
  std::set<Key> keys;
  std::set<Key> nameless;
  for (const OwnerAccount& account : ledger.owners) {
    keys.insert(key_of(account));
    nameless.insert({account.gpu.text, account.owner.kind, {}});
  }
  return std::min(keys.size(), kMostClosed + nameless.size());
}

// Keeps the first by `before` in their order; gives the others.
template <typename Account, typename Before>
std::vector<const Account*> keep_first(std::vector<const Account*>& list, size_t room, Before before) {
  std::vector<const Account*> ranked = list;
  std::stable_sort(ranked.begin(), ranked.end(), before);
  ranked.erase(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(std::min(room, ranked.size())));
  const std::set<const Account*> left_out(ranked.begin(), ranked.end());
  std::erase_if(list, [&](const Account* account) { return left_out.contains(account); });
  return ranked;
}

}  // namespace

JsonAccounts::JsonAccounts(const Ledger& ledger, size_t most)
    : processes(pointers_to(ledger.processes)),
      owners(owners_in_order(ledger)),
      allocations(pointers_to(ledger.allocations)),
      closed(ledger.closed) {
  if (most == 0 || processes.size() + owners.size() + allocations.size() + closed.size() <= most) return;
  const size_t fixed = closed.size() + room_for_closed(ledger);
  const auto rooms = share<3>(most > fixed ? most - fixed : 0, {processes.size(), owners.size(), allocations.size()});
  const Spending spending(ledger);
  const auto by_spending = [&](const auto* a, const auto* b) { return spending.of(a) > spending.of(b); };
  const auto running_first = [&](const ProcessAccount* a, const ProcessAccount* b) {
    return a->active != b->active ? a->active : by_spending(a, b);
  };
  processes_left_out = keep_first(processes, rooms[0], running_first).size();
  const auto owners_without_room = keep_first(owners, rooms[1], by_spending);
  owners_left_out = owners_without_room.size();
  close(owners_without_room);
  allocations_left_out = keep_first(allocations, rooms[2], by_spending).size();
}

void JsonAccounts::close(const std::vector<const OwnerAccount*>& left_out) {
  std::map<Key, size_t> places;
  for (size_t i = 0; i < closed.size(); ++i) places[{closed[i].gpu.text, closed[i].kind, closed[i].name_space}] = i;
  for (const OwnerAccount* account : left_out) {
    if (!account->owner.job.empty()) jobs_left_out.insert(account->owner.job);
    Key key = key_of(*account);
    if (closed.size() >= kMostClosed && !places.contains(key)) std::get<2>(key) = kOtherNamespaces;
    const auto [place, is_new] = places.try_emplace(key, closed.size());
    if (is_new) closed.push_back({account->owner.kind, std::get<2>(key), account->gpu, account->gpu_index, {}});
    closed[place->second].booked += account->booked;
  }
}

}  // namespace gpuledger::expose
