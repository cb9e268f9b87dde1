// SPDX-License-Identifier: Apache-2.0
#include "expose/series_limit.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "expose/collectors/collectors.h"

namespace gpuledger::expose {
namespace {

// Upper bounds for a GPU, and for driver calls and the program itself.
constexpr size_t kOfGpu = 200;
constexpr size_t kOfProgram = 600;
// Most samples of a row for one process, owner, closed account, allocation or pod.
constexpr size_t kMostOfRow = 2;
// Namespaces of owners that are left out; more are added together.
constexpr size_t kMostClosed = 256;

template <typename Entry>
size_t count(std::span<const Row<Entry>> rows, const View& view, const Entry& entry) {
  CountingSink sink;
  Samples samples(view, sink, {});
  for (const Row<Entry>& row : rows) row.read(entry, samples);
  return sink.samples();
}

template <typename Entry, typename Entries>
size_t count_all(std::span<const Row<Entry>> rows, const View& view, const Entries& entries) {
  size_t sum = 0;
  for (const Entry& entry : entries) sum += count(rows, view, entry);
  return sum;
}

size_t series_of_owner(const View& view, const OwnerSeries& series) {
  return count(owner_rows(), view, series) +
         (owner_kind(series.kind()).of_user ? count(user_rows(), view, series) : 0) +
         (series.kind() == OwnerKind::kPod ? count(pod_owner_rows(), view, series) : 0);
}

size_t series_of_allocation(const View& view, const AllocationSeries& series) {
  return count(allocation_rows(), view, series) + count(given_rows(), view, series);
}

// Rows for each process, and the list of the View that they are for.
struct ProcessTable {
  const char* collector;
  std::vector<ProcessSeries> View::*list;
  std::span<const Row<ProcessSeries>> (*rows)();
};
constexpr ProcessTable kProcessTables[] = {
    {"process", &View::processes, process_rows},           {"process-native", &View::processes, process_native_rows},
    {"process-info", &View::processes, process_info_rows}, {"idle", &View::holders, idle_process_rows},
    {"processlist", &View::listed, processlist_rows},
};

template <typename Use>
void for_each_shown(const View& view, Use use) {
  for (const ProcessTable& table : kProcessTables) {
    if (view.options.collectors.contains(table.collector)) use(view.*table.list, table.rows());
  }
}

// The indices of a list's entries, the highest energy first.
template <typename Entries, typename Spent>
std::vector<size_t> by_spending(const Entries& entries, Spent spent) {
  std::vector<std::pair<Energy, size_t>> ranks;
  ranks.reserve(entries.size());
  for (size_t place = 0; place < entries.size(); ++place) ranks.emplace_back(spent(entries[place]), place);
  std::sort(ranks.begin(), ranks.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::vector<size_t> order;
  order.reserve(ranks.size());
  for (const auto& [energy, place] : ranks) order.push_back(place);
  return order;
}

// Entries stay in their order.
template <typename Entries>
void keep_places(Entries& entries, std::vector<size_t> places) {
  std::sort(places.begin(), places.end());
  Entries kept;
  kept.reserve(places.size());
  for (const size_t place : places) kept.push_back(std::move(entries[place]));
  entries = std::move(kept);
}

// Keeps the first ones that have room.
template <typename Need>
void cut(std::vector<size_t>& order, size_t room, Need need) {
  size_t used = 0;
  const auto full =
      std::find_if(order.begin(), order.end(), [&](size_t place) { return (used += need(place)) > room; });
  order.erase(full, order.end());
}

// Each gets the room it needs, or an equal part of what the others leave.
template <size_t N>
std::array<size_t, N> share(size_t room, const std::array<size_t, N>& needs) {
  std::array<size_t, N> order;
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return needs[a] < needs[b]; });
  std::array<size_t, N> given{};
  for (size_t i = 0; i < N; ++i) {
    given[order[i]] = std::min(needs[order[i]], room / (N - i));
    room -= given[order[i]];
  }
  return given;
}

void cut_processes(View& view, size_t room) {
  std::unordered_map<const ProcessAccount*, size_t> series_of;  // in all lists together
  for_each_shown(view, [&](const std::vector<ProcessSeries>& list, std::span<const Row<ProcessSeries>> rows) {
    for (const ProcessSeries& series : list) series_of[series.newest] += count(rows, view, series);
  });
  std::vector<size_t> order = by_spending(view.processes, [](const auto& series) { return series.booked.total(); });
  cut(order, room, [&](size_t place) { return series_of[view.processes[place].newest]; });
  std::unordered_set<const ProcessAccount*> kept;
  for (const size_t place : order) kept.insert(view.processes[place].newest);
  keep_places(view.processes, std::move(order));
  const auto gone = [&](const ProcessSeries& series) { return !kept.contains(series.newest); };
  std::erase_if(view.holders, gone);
  std::erase_if(view.listed, gone);
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

void cut_owners(View& view, size_t room) {
  std::vector<size_t> order = by_spending(view.owners, [](const auto& series) { return series.booked.total(); });
  std::vector<size_t> all = order;
  cut(order, room, [&](size_t place) { return series_of_owner(view, view.owners[place]); });
  for (size_t i = order.size(); i < all.size(); ++i) close(view, view.owners[all[i]]);
  keep_places(view.owners, std::move(order));
}

void cut_given(View& view, size_t room) {
  using PodName = std::pair<std::string_view, std::string_view>;
  std::map<PodName, Energy> spent;
  for (const OwnerAccount& account : view.cycle.ledger.owners) {
    if (account.owner.kind == OwnerKind::kPod)
      spent[{account.owner.name_space, account.owner.pod}] += account.booked.total();
  }
  const auto spent_by = [&](const PodName& pod) {
    const auto found = spent.find(pod);
    return found == spent.end() ? Energy() : found->second;
  };
  const size_t of_pods = std::min(count_all(pod_rows(), view, view.pods), room / 3);
  auto pods = by_spending(view.pods, [&](const PodFacts* pod) { return spent_by({pod->name_space, pod->pod}); });
  cut(pods, of_pods, [&](size_t place) { return count(pod_rows(), view, view.pods[place]); });
  keep_places(view.pods, std::move(pods));
  auto given = by_spending(view.allocations, [&](const AllocationSeries& series) {
    return spent_by({series.account->allocation.name_space, series.account->allocation.pod});
  });
  cut(given, room - of_pods, [&](size_t place) { return series_of_allocation(view, view.allocations[place]); });
  keep_places(view.allocations, std::move(given));
}

// The series that always stay.
size_t count_fixed(View& view, SeriesCount (*count_series)(const View&)) {
  auto processes = std::exchange(view.processes, {});
  auto holders = std::exchange(view.holders, {});
  auto listed = std::exchange(view.listed, {});
  auto owners = std::exchange(view.owners, {});
  auto allocations = std::exchange(view.allocations, {});
  auto pods = std::exchange(view.pods, {});
  const size_t fixed = sum_of(count_series(view));
  view.processes = std::move(processes);
  view.holders = std::move(holders);
  view.listed = std::move(listed);
  view.owners = std::move(owners);
  view.allocations = std::move(allocations);
  view.pods = std::move(pods);
  return fixed;
}

}  // namespace

size_t sum_of(const SeriesCount& count) {
  size_t sum = 0;
  for (const auto& [collector, series] : count) sum += series;
  return sum;
}

size_t most_series(const View& view) {
  size_t most =
      kOfProgram + kOfGpu * view.devices.size() +
      kMostOfRow * ((owner_rows().size() + user_rows().size() + pod_owner_rows().size()) * view.owners.size() +
                    closed_rows().size() * view.closed.size() +
                    (allocation_rows().size() + given_rows().size()) * view.allocations.size() +
                    slurm_allocation_rows().size() * view.slurm_allocations.size());
  for_each_shown(view, [&](const auto& list, auto rows) { most += kMostOfRow * rows.size() * list.size(); });
  for (const PodSeries& pod : view.pods) most += pod_rows().size() + pod->requests.size();
  return most;
}

size_t expected_bytes(const View& view) {
  constexpr size_t kNameAndValue = 64;
  constexpr size_t kLabels = 220;
  size_t bytes = 64 * 1024;
  const auto add = [&](const auto& list, size_t rows) {
    for (const auto& series : list)
      bytes += (rows + 1) * (series.labels.size() + kNameAndValue);  // one has two samples
  };
  for_each_shown(view, [&](const auto& list, auto rows) { add(list, rows.size()); });
  add(view.owners, owner_rows().size() + pod_owner_rows().size());
  add(view.allocations, allocation_rows().size() + given_rows().size());
  add(view.slurm_allocations, slurm_allocation_rows().size());
  return bytes + (pod_rows().size() * view.pods.size() + 3 * view.closed.size()) * (kLabels + kNameAndValue);
}

void keep_biggest(View& view, SeriesCount (*count_series)(const View&)) {
  const size_t fixed = count_fixed(view, count_series) + room_for_closed(view);
  const size_t room = view.options.max_series > fixed ? view.options.max_series - fixed : 0;
  size_t processes = 0;
  for_each_shown(view, [&](const auto& list, auto rows) { processes += count_all(rows, view, list); });
  size_t owners = 0;
  for (const OwnerSeries& series : view.owners) owners += series_of_owner(view, series);
  size_t given = count_all(pod_rows(), view, view.pods);
  for (const AllocationSeries& series : view.allocations) given += series_of_allocation(view, series);
  const auto rooms = share<3>(room, {processes, owners, given});
  if (rooms[0] < processes) cut_processes(view, rooms[0]);
  if (rooms[1] < owners) cut_owners(view, rooms[1]);
  if (rooms[2] < given) cut_given(view, rooms[2]);
}

}  // namespace gpuledger::expose
