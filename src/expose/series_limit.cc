// SPDX-License-Identifier: Apache-2.0
#include "expose/series_limit.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "expose/collectors/collectors.h"
#include "expose/spending.h"

namespace gpuledger::expose {
namespace {

// Most samples of a row for one closed account.
constexpr size_t kMostOfRow = 2;

struct Counted {
  Account account;
  size_t series = 0;
  Energy spent;
};

// In Account's order; pods and allocations share.
constexpr size_t kShares = 3;
size_t share_of(const Account& account) {
  return std::min(account.index(), kShares) - 1;
}

const void* address_of(const Account& account) {
  return std::visit(
      [](auto one) -> const void* {
        if constexpr (std::is_pointer_v<decltype(one)>) return one;
        return nullptr;
      },
      account);
}

// The series of each account in all families. The first is for what always stays.
std::vector<Counted> count_accounts(const View& view, std::span<const Family* const> families) {
  std::vector<Counted> counted(1);
  std::unordered_map<const void*, size_t> places{{nullptr, 0}};
  for (const Family* family : families) {
    family->count(view, [&](const Account& account, size_t samples) {
      const auto [place, is_new] = places.try_emplace(address_of(account), counted.size());
      if (is_new) counted.push_back({account, 0, {}});
      counted[place->second].series += samples;
    });
  }
  return counted;
}

ClosedKey closed_key(const OwnerSeries& series) {
  return {series.account->gpu_index, series.kind(), series.account->owner.name_space};
}

void close(View& view, const OwnerSeries& series) {
  ClosedKey key = closed_key(series);
  if (view.closed.size() >= kMostClosed && !view.closed.contains(key)) key.name_space = kOtherNamespaces;
  view.closed[key] += series.booked;
}

// Most series of closed accounts that left out owners can add.
size_t room_for_closed(const View& view) {
  std::set<ClosedKey> keys;
  std::set<std::pair<uint32_t, OwnerKind>> nameless;
  for (const OwnerSeries& series : view.owners) {
    keys.insert(closed_key(series));
    nameless.insert({series.account->gpu_index, series.kind()});
  }
  return kMostOfRow * closed_rows().size() * std::min(keys.size(), kMostClosed + nameless.size());
}

}  // namespace

void keep_biggest(View& view, std::span<const Family* const> families) {
  std::vector<Counted> counted = count_accounts(view, families);
  const size_t fixed = counted.front().series + room_for_closed(view);
  counted.erase(counted.begin());
  const Spending spending(view.cycle.ledger);
  std::array<size_t, kShares> needs{};
  for (Counted& one : counted) {
    one.spent = std::visit([&](auto account) { return spending.of(account); }, one.account);
    needs[share_of(one.account)] += one.series;
  }
  std::stable_sort(counted.begin(), counted.end(), [](const auto& a, const auto& b) { return a.spent > b.spent; });
  const auto rooms = share(view.options.max_series > fixed ? view.options.max_series - fixed : 0, needs);
  std::array<size_t, kShares> used{};
  for (const Counted& one : counted) {
    const size_t of = share_of(one.account);
    used[of] += one.series;
    if (used[of] > rooms[of]) view.unshown.insert(address_of(one.account));
  }
  for (const OwnerSeries& series : view.owners) {
    if (!view.shows(series.account)) close(view, series);
  }
}

}  // namespace gpuledger::expose
