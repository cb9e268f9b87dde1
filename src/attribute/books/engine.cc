#include "attribute/books/engine.h"

#include <algorithm>
#include <set>

#include "attribute/books/folding.h"

namespace gpuledger::attribute {
namespace {

// Sorts what is large by way of pointers. It comes as a few runs that are in order (one for each GPU), so they are
// merged and not sorted from nothing: comparing owners is comparing many strings.
template <typename T, typename Less>
void sort_large(std::vector<T>& items, Less less) {
  std::vector<T*> order;
  order.reserve(items.size());
  std::vector<size_t> runs;  // where each begins, and the end
  for (T& item : items) {
    if (order.empty() || less(item, *order.back())) runs.push_back(order.size());
    order.push_back(&item);
  }
  runs.push_back(order.size());
  const auto before = [&](const T* a, const T* b) { return less(*a, *b); };
  const auto at = [&](size_t run) {
    return order.begin() + static_cast<ptrdiff_t>(runs[std::min(run, runs.size() - 1)]);
  };
  for (size_t width = 1; width + 1 < runs.size(); width *= 2) {
    for (size_t run = 0; run + width + 1 < runs.size(); run += 2 * width) {
      std::inplace_merge(at(run), at(run + width), at(run + 2 * width), before);
    }
  }
  // Moved to their places round by round, which needs no second copy of them all.
  for (size_t first = 0; first < order.size(); ++first) {
    size_t place = first;
    size_t source = static_cast<size_t>(order[place] - items.data());
    if (source == place) continue;
    T held = std::move(items[first]);
    while (source != first) {
      items[place] = std::move(items[source]);
      order[place] = &items[place];
      place = source;
      source = static_cast<size_t>(order[place] - items.data());
    }
    items[place] = std::move(held);
    order[place] = &items[place];
  }
}

void put_in_order(Ledger& ledger) {
  // In order already, unless two GPUs have had one index.
  const auto earlier = [](const ProcessAccount& a, const ProcessAccount& b) {
    return std::tie(a.gpu_index, a.identity.key) < std::tie(b.gpu_index, b.identity.key);
  };
  if (!std::is_sorted(ledger.processes.begin(), ledger.processes.end(), earlier)) sort_large(ledger.processes, earlier);
  sort_large(ledger.owners, [](const OwnerAccount& a, const OwnerAccount& b) {
    return std::tie(a.owner, a.gpu_index) < std::tie(b.owner, b.gpu_index);
  });
}

}  // namespace

Ledger Engine::advance(const SampleBatch& batch, const IdentityMap& identities) {
  const Nanoseconds now = batch.at.steady;
  ++batches_;
  std::set<GpuUuid> present;
  for (const DeviceSample& sample : batch.devices) {
    const GpuUuid& uuid = sample.description->uuid;
    if (!present.insert(uuid).second) continue;
    const auto [book, opened] = books_.try_emplace(uuid, sample.description, constants_);
    if (const auto memory = remembered_.find(uuid); opened && memory != remembered_.end()) {
      book->second.restore(memory->second, boot_id_, now);
      remembered_.erase(memory);
    }
    book->second.advance(sample, batch, identities, rules_);
  }
  for (auto& [uuid, book] : books_) {
    if (!present.contains(uuid)) book.mark_down(now);
  }

  if (!last_idle_evaluation_) last_idle_evaluation_ = now;
  // Half a step early counts as due: cycles come with some jitter.
  if (now - *last_idle_evaluation_ + rules_.sample_interval / 2 >= rules_.idle_interval) {
    last_idle_evaluation_ = now;
    for (auto& [uuid, book] : books_) book.evaluate_idleness();
  }

  Ledger ledger;
  const std::vector<DeviceBook*> books = books_by_index();
  size_t processes = 0;
  size_t owners = 0;
  fold_accounts(books, now, rules_, folded_);
  for (const DeviceBook* book : books) {
    processes += book->accounts();
    owners += book->owners();
  }
  ledger.processes.reserve(processes);
  ledger.owners.reserve(owners);
  for (const DeviceBook* book : books) book->write_to(ledger, batch.at, rules_);
  put_in_order(ledger);
  ledger.folded = folded_;
  ledger.allocations = allocations_.advance(batch, identities.allocations, ledger.processes);
  return ledger;
}

std::vector<DeviceBook*> Engine::books_by_index() {
  std::vector<DeviceBook*> books;
  for (auto& [uuid, book] : books_) books.push_back(&book);
  std::stable_sort(books.begin(), books.end(), [](auto* a, auto* b) { return a->gpu_index() < b->gpu_index(); });
  return books;
}

EngineState Engine::state() const {
  EngineState state;
  state.number = states_before_ + batches_;
  for (const auto& [uuid, book] : books_) state.devices.push_back(book.state(boot_id_));
  for (const auto& [uuid, device] : remembered_) state.devices.push_back(device);
  return state;
}

void Engine::restore(EngineState state, std::string boot_id) {
  boot_id_ = std::move(boot_id);
  states_before_ = state.number;
  for (DeviceState& device : state.devices) remembered_.insert_or_assign(device.uuid, std::move(device));
}

}  // namespace gpuledger::attribute
