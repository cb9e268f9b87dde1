// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/folding.h"

#include <algorithm>
#include <limits>
#include <set>

namespace gpuledger::attribute {
namespace {

using Ended = DeviceBook::Ended;
using List = std::vector<Ended> (DeviceBook::*)() const;
using GiveUp = size_t (DeviceBook::*)(const Ended&);

struct Place {
  Nanoseconds at{0};
  size_t book = 0;
  uint64_t id = 0;
  auto operator<=>(const Place&) const = default;
};

// Keeps the newest of all GPUs together.
uint64_t keep_newest(const std::vector<DeviceBook*>& books, size_t most, List list, GiveUp give_up) {
  std::vector<Place> places;
  for (size_t book = 0; book < books.size(); ++book) {
    for (const Ended& ended : (books[book]->*list)()) places.push_back({ended.at, book, ended.id});
  }
  if (places.size() <= most) return 0;
  const auto last = places.begin() + static_cast<ptrdiff_t>(places.size() - most - 1);
  std::nth_element(places.begin(), last, places.end());
  uint64_t gone = 0;
  for (size_t book = 0; book < books.size(); ++book) {
    const uint64_t id = book < last->book ? std::numeric_limits<uint64_t>::max() : book == last->book ? last->id : 0;
    gone += (books[book]->*give_up)({last->at, id});
  }
  return gone;
}

}  // namespace

void fold_accounts(const std::vector<DeviceBook*>& books, Nanoseconds now, const BookingRules& rules,
                   FoldedAccounts& folded) {
  for (DeviceBook* book : books) book->forget_exited(now, rules);
  folded.processes_over_limit +=
      keep_newest(books, rules.most_exited_processes, &DeviceBook::exited_accounts, &DeviceBook::forget_accounts);
  for (DeviceBook* book : books) folded.owners_over_time += book->close_owners({now - rules.owner_retention, 0});
  folded.owners_over_limit +=
      keep_newest(books, rules.most_ended_owners, &DeviceBook::ended_owners, &DeviceBook::close_owners);
  std::set<Name> jobs;
  for (DeviceBook* book : books) jobs.merge(book->take_closed_jobs());
  if (jobs.empty()) return;
  for (DeviceBook* book : books) book->mark_steps_closed(jobs);
}

}  // namespace gpuledger::attribute
