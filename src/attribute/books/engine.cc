// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/engine.h"

#include <algorithm>
#include <set>

#include "attribute/books/folding.h"

namespace gpuledger::attribute {
namespace {

void put_in_order(std::vector<ProcessAccount>& processes) {
  // Already sorted, unless two GPUs have had one index.
  const auto earlier = [](const ProcessAccount& a, const ProcessAccount& b) {
    return std::tie(a.gpu_index, a.identity.key) < std::tie(b.gpu_index, b.identity.key);
  };
  if (!std::is_sorted(processes.begin(), processes.end(), earlier)) {
    std::stable_sort(processes.begin(), processes.end(), earlier);
  }
}

}  // namespace

Ledger Engine::advance(const SampleBatch& batch, const IdentityMap& identities) {
  const Nanoseconds now = batch.at.steady;
  ++batches_;
  std::set<GpuUuid> present;
  for (const DeviceSample& sample : batch.devices) {
    const GpuUuid& uuid = sample.description->uuid;
    if (!present.insert(uuid).second) continue;
    const auto [book, opened] = books_.try_emplace(uuid, sample.description, constants_, batch.at.wall);
    if (const auto memory = remembered_.find(uuid); opened && memory != remembered_.end()) {
      book->second.restore(memory->second, boot_id_, batch.at);
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
  put_in_order(ledger.processes);
  ledger.folded = folded_;
  ledger.allocations = allocations_.advance(batch, identities.allocations, ledger.processes, rules_.idle_interval);
  ledger.slurm_allocations =
      slurm_allocations_.advance(batch, identities.slurm_allocations, ledger.processes, rules_.idle_interval);
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
  for (DeviceState& device : state.devices) {
    if (device.opening) ++device.opening->run;
    remembered_.insert_or_assign(device.uuid, std::move(device));
  }
}

}  // namespace gpuledger::attribute
