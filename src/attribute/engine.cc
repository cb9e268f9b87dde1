#include "attribute/engine.h"

#include <algorithm>
#include <set>

namespace gpuledger::attribute {

Ledger Engine::advance(const SampleBatch& batch, const IdentityMap& identities) {
  const Nanoseconds now = batch.at.steady;
  ++batches_;
  std::set<GpuUuid> present;
  for (const DeviceSample& sample : batch.devices) {
    const GpuUuid& uuid = sample.description->uuid;
    if (!present.insert(uuid).second) continue;
    const auto [book, opened] = books_.try_emplace(uuid, sample.description);
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
  for (auto& [uuid, book] : books_) {
    book.forget_exited(now, rules_);
    book.write_to(ledger, batch.at, rules_);
  }
  std::stable_sort(ledger.devices.begin(), ledger.devices.end(),
                   [](const auto& a, const auto& b) { return a.description->index < b.description->index; });
  std::stable_sort(ledger.processes.begin(), ledger.processes.end(), [](const auto& a, const auto& b) {
    return std::tie(a.gpu_index, a.identity.key) < std::tie(b.gpu_index, b.identity.key);
  });
  std::stable_sort(ledger.owners.begin(), ledger.owners.end(), [](const auto& a, const auto& b) {
    return std::tie(a.owner, a.gpu_index) < std::tie(b.owner, b.gpu_index);
  });
  return ledger;
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
