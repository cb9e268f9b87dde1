// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "attribute/books/device_book.h"

// The part of a GPU's books that drops old accounts, so that the books do not grow for ever.
namespace gpuledger::attribute {
namespace {

// The estimator corrects up to ten minutes of the past.
constexpr Nanoseconds kPastCanChange = std::chrono::minutes(15);
// Some users make one namespace per job.
constexpr size_t kMostClosedNamespaces = 256;

}  // namespace

// Two processes can have the same labels one after the other (a pid used again). They are one series, which must
// not fall when the older account is dropped.
void DeviceBook::bequeath(const AccountKey& key, const Account& old) {
  const Pid pid = std::get<0>(key).pid;
  for (auto it = first_account({pid, 0}, std::nullopt); it != accounts_.end(); ++it) {
    auto& [other_key, heir] = *it;
    if (std::get<0>(other_key).pid != pid) return;
    const bool same_labels = std::get<1>(other_key) == std::get<1>(key) && std::get<2>(other_key) == std::get<2>(key) &&
                             heir.identity.name == old.identity.name &&
                             heir.identity.container_id == old.identity.container_id;
    if (heir.id == old.id || !same_labels) continue;
    heir.inherited += old.booked;
    heir.inherited += old.inherited;
    if (old.memory_peak) heir.memory_peak = std::max(heir.memory_peak.value_or(Bytes{}), *old.memory_peak);
    if (!heir.owner && old.owner) join(heir, *old.owner);
    return;
  }
}

template <typename Matches>
size_t DeviceBook::forget_if(Matches matches) {
  if (exited_ == 0) return 0;
  return std::erase_if(accounts_, [&](const auto& entry) {
    const Account& account = entry.second;
    if (!account.exited || !matches(account)) return false;
    if (estimator_) estimator_->forget(account.id, account.identity.key);
    bequeath(entry.first, account);
    if (account.owner && --account.owner->accounts == 0) ++ended_owners_;
    --exited_;
    return true;
  });
}

void DeviceBook::forget_exited(Nanoseconds now, const BookingRules& rules) {
  // Processes of a lost GPU are kept, because they pay for this time if they still run when it answers again. Their
  // number cannot grow meanwhile. Those of a GPU that may never come back are not kept for ever.
  const Nanoseconds longest = std::max(rules.retention, rules.owner_retention);
  if (!up_ && down_since_ && now - *down_since_ > longest) retire_missing(Present{}, true);
  forget_if([&](const Account& account) { return now - *account.exited > rules.retention; });
  while (!closed_lately_.empty() && now - closed_lately_.front().at > kPastCanChange) {
    if (estimator_) estimator_->forget_owner(closed_lately_.front().id);
    closed_lately_.pop_front();
  }
}

std::vector<DeviceBook::Ended> DeviceBook::exited_accounts() const {
  std::vector<Ended> ended;
  if (exited_ == 0) return ended;
  for (const auto& [key, account] : accounts_) {
    if (account.exited) ended.push_back({*account.exited, account.id});
  }
  return ended;
}

size_t DeviceBook::forget_accounts(const Ended& last) {
  return forget_if([&](const Account& account) { return Ended{*account.exited, account.id} <= last; });
}

// An owner that was charged in this step is shown once more, or its counter would miss the last joules.
bool DeviceBook::has_ended(const OwnerBook& book) const {
  return book.accounts == 0 && (book.last_seen < now_ || !up_);
}

// The steps of a Slurm job end together: a report of the job is the sum of its steps.
std::map<Name, Nanoseconds> DeviceBook::last_seen_of_jobs() const {
  std::map<Name, Nanoseconds> latest;
  for (const auto& [owner, book] : owners_) {
    if (owner.job.empty()) continue;
    Nanoseconds& at = latest[owner.job];
    at = std::max(at, book.last_seen);
  }
  return latest;
}

std::vector<DeviceBook::Ended> DeviceBook::ended_owners() const {
  std::vector<Ended> ended;
  if (ended_owners_ == 0) return ended;
  const auto jobs = last_seen_of_jobs();
  for (const auto& [owner, book] : owners_) {
    if (!has_ended(book)) continue;
    ended.push_back({owner.job.empty() ? book.last_seen : jobs.at(owner.job), book.id});
  }
  return ended;
}

size_t DeviceBook::close_owners(const Ended& last) {
  std::vector<uint64_t> closing;  // their ids, sorted
  for (const Ended& ended : ended_owners()) {
    if (ended <= last) closing.push_back(ended.id);
  }
  if (closing.empty()) return 0;
  std::sort(closing.begin(), closing.end());
  return std::erase_if(owners_, [&](const auto& entry) {
    if (!std::binary_search(closing.begin(), closing.end(), entry.second.id)) return false;
    close_owner(entry.first, entry.second);
    --ended_owners_;
    return true;
  });
}

// The joules stay in the books. If the owner comes back, its counter starts at zero.
void DeviceBook::close_owner(const Owner& owner, const OwnerBook& book) {
  closed_[{owner.kind, owner.name_space}] += book.booked;
  closed_lately_.push_back({now_, book.id});
  if (!owner.job.empty()) closed_jobs_.insert(owner.job);
  keep_closed_few();
}

void DeviceBook::mark_steps_closed(const std::set<Name>& jobs) {
  for (auto& [owner, book] : owners_) { book.steps_closed |= !owner.job.empty() && jobs.contains(owner.job); }
}

// The smallest ones are added together.
void DeviceBook::keep_closed_few() {
  if (closed_.size() <= kMostClosedNamespaces) return;
  auto least = closed_.end();
  for (auto entry = closed_.begin(); entry != closed_.end(); ++entry) {
    const Name& name_space = entry->first.second;
    if (name_space.empty() || name_space == kOtherNamespaces) continue;
    if (least == closed_.end() || entry->second.total() < least->second.total()) least = entry;
  }
  if (least == closed_.end()) return;
  closed_[{least->first.first, kOtherNamespaces}] += least->second;
  closed_.erase(least);
}

}  // namespace gpuledger::attribute
