// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/replay_identities.h"

#include <algorithm>
#include <iterator>

namespace gpuledger::replay {

ReplayIdentities::ReplayIdentities(const Trace& trace) {
  const auto life_of = [&](Pid pid, Nanoseconds t) -> Life& {
    const auto [entry, fresh] = lives_.try_emplace(pid);
    entry->second.first_seen = fresh ? t : std::min(entry->second.first_seen, t);
    return entry->second;
  };
  for (const Trace::Ticket& ticket : trace.tickets) life_of(ticket.pid, ticket.t);
  for (const Trace::Listing& listing : trace.listings) {
    for (const auto* list : {&listing.compute, &listing.mps}) {
      for (const Trace::Holder& holder : *list) life_of(holder.pid, listing.t).last_listed = listing.t;
    }
  }
  for (const Trace::Process& process : trace.processes) {
    const auto life = lives_.find(process.pid);
    if (life != lives_.end()) life->second.called.push_back(process);
  }
}

ProcessIdentity ReplayIdentities::identity_of(Pid pid, const Life& life, Nanoseconds now) {
  constexpr auto kTick = std::chrono::milliseconds(10);
  ProcessIdentity identity;
  identity.name = "pid-" + std::to_string(pid);
  // 0 means that only the pid is known.
  identity.key = {pid, 1 + static_cast<uint64_t>(std::max<int64_t>(0, life.first_seen / kTick))};
  // The newest name of that time. The driver's samples may be a little older than the first.
  const auto later = [](Nanoseconds t, const Trace::Process& process) { return t < process.t; };
  const auto next = std::upper_bound(life.called.begin(), life.called.end(), now, later);
  if (!life.called.empty()) {
    const Trace::Process& called = next == life.called.begin() ? *next : *std::prev(next);
    identity.name = called.name;
    identity.owner = called.owner;
  }
  return identity;
}

std::shared_ptr<const IdentityMap> ReplayIdentities::resolve(const SampleBatch& batch) {
  auto map = std::make_shared<IdentityMap>();
  for (const DeviceSample& device : batch.devices) {
    for (const ProcessSample& process : device.processes) {
      Life& life = lives_[process.pid];
      // Active before the next list shows it: /proc would have had it already.
      if (process.listed || life.last_listed >= batch.at.steady) {
        life.known = true;
        map->by_pid[process.pid] = identity_of(process.pid, life, batch.at.steady);
      } else if (!life.known) {
        ProcessIdentity momentary = identity_of(process.pid, life, batch.at.steady);
        momentary.key.start_ticks = 0;
        map->by_pid[process.pid] = std::move(momentary);
      }
    }
  }
  return map;
}

}  // namespace gpuledger::replay
