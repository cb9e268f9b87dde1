#include "expose/series_limit.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace gpuledger::expose {
namespace {

// No emit function gives more for one of these.
constexpr size_t kOfRunning = 10;
constexpr size_t kOfExited = 7;
constexpr size_t kOfHolder = 4;
constexpr size_t kOfListed = 3;
constexpr size_t kOfOwner = 5;
constexpr size_t kOfClosed = 3;
constexpr size_t kOfAllocation = 2;
constexpr size_t kOfPod = 1;
// GPUs, driver calls, the program itself: far more than eight GPUs have.
constexpr size_t kOfGpu = 200;
constexpr size_t kOfProgram = 600;
// Namespaces of owners that are left out; what is beyond counts together.
constexpr size_t kMostClosed = 256;

size_t series_of(const ProcessSeries& series) {
  return series.newest->active ? kOfRunning : kOfExited;
}

// The places of a list's entries, the biggest spender first.
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

// As many of the first as there is room for.
template <typename Need>
void cut(std::vector<size_t>& order, size_t room, Need need) {
  size_t used = 0;
  const auto full =
      std::find_if(order.begin(), order.end(), [&](size_t place) { return (used += need(place)) > room; });
  order.erase(full, order.end());
}

// What each gets of the room: what it needs, or an equal part of what the others leave.
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
  std::unordered_set<const ProcessAccount*> held;
  for (const ProcessSeries& series : view.holders) held.insert(series.newest);
  std::vector<size_t> order = by_spending(view.processes, [](const auto& series) { return series.booked.total(); });
  cut(order, room, [&](size_t place) {
    const ProcessSeries& series = view.processes[place];
    return series_of(series) + (held.contains(series.newest) ? kOfHolder : 0) + (series.newest->active ? kOfListed : 0);
  });
  std::unordered_set<const ProcessAccount*> kept;
  for (const size_t place : order) kept.insert(view.processes[place].newest);
  keep_places(view.processes, std::move(order));
  const auto gone = [&](const ProcessSeries& series) { return !kept.contains(series.newest); };
  std::erase_if(view.holders, gone);
  std::erase_if(view.listed, gone);
}

void close(View& view, const OwnerSeries& series) {
  ClosedKey key{series.gpu_index, series.kind, series.name_space};
  if (view.closed.size() >= kMostClosed && !view.closed.contains(key)) key.name_space = kOtherNamespaces;
  view.closed[key] += series.booked;
}

// Series of closed accounts that leaving out owners may add at most.
size_t room_for_closed(const View& view) {
  std::set<ClosedKey> keys;
  std::set<std::pair<uint32_t, OwnerKind>> nameless;
  for (const OwnerSeries& series : view.owners) {
    keys.insert({series.gpu_index, series.kind, series.name_space});
    nameless.insert({series.gpu_index, series.kind});
  }
  return kOfClosed * std::min(keys.size(), kMostClosed + nameless.size());
}

void cut_owners(View& view, size_t room) {
  std::vector<size_t> order = by_spending(view.owners, [](const auto& series) { return series.booked.total(); });
  std::vector<size_t> all = order;
  cut(order, room, [](size_t) { return kOfOwner; });
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
  const size_t of_pods = std::min(view.pods.size() * kOfPod, room / 3);
  auto pods = by_spending(view.pods, [&](const PodFacts* pod) { return spent_by({pod->name_space, pod->pod}); });
  cut(pods, of_pods, [](size_t) { return kOfPod; });
  keep_places(view.pods, std::move(pods));
  auto given = by_spending(view.allocations, [&](const AllocationAccount* account) {
    return spent_by({account->allocation.name_space, account->allocation.pod});
  });
  cut(given, room - of_pods, [](size_t) { return kOfAllocation; });
  keep_places(view.allocations, std::move(given));
}

// The series that stay whatever happens.
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
  return kOfProgram + kOfGpu * view.devices.size() + kOfRunning * view.processes.size() +
         kOfHolder * view.holders.size() + kOfListed * view.listed.size() + kOfOwner * view.owners.size() +
         kOfClosed * view.closed.size() + kOfAllocation * view.allocations.size() + kOfPod * view.pods.size();
}

void keep_biggest(View& view, SeriesCount (*count_series)(const View&)) {
  const size_t fixed = count_fixed(view, count_series) + room_for_closed(view);
  const size_t room = view.options.max_series > fixed ? view.options.max_series - fixed : 0;
  size_t processes = kOfHolder * view.holders.size() + kOfListed * view.listed.size();
  for (const ProcessSeries& series : view.processes) processes += series_of(series);
  const size_t owners = kOfOwner * view.owners.size();
  const size_t given = kOfAllocation * view.allocations.size() + kOfPod * view.pods.size();
  const auto rooms = share<3>(room, {processes, owners, given});
  if (rooms[0] < processes) cut_processes(view, rooms[0]);
  if (rooms[1] < owners) cut_owners(view, rooms[1]);
  if (rooms[2] < given) cut_given(view, rooms[2]);
}

}  // namespace gpuledger::expose
