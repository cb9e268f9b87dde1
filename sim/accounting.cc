// SPDX-License-Identifier: Apache-2.0
#include "accounting.h"

#include <algorithm>

#include "gpu.h"

namespace gpuledger::sim {

void AccountingBook::set(bool on) {
  if (on && !on_) records_.clear();
  on_ = on;
}

void AccountingBook::add(const Ticket& ticket, const std::vector<Context>& contexts) {
  if (!on_) return;
  for (auto& [pid, record] : records_) {
    const bool alive =
        std::any_of(contexts.begin(), contexts.end(), [p = pid](const Context& c) { return c.pid == p; });
    if (!alive && record.end == kForever) record.end = ticket.t;
  }
  for (const Context& context : contexts) {
    auto [at, fresh] = records_.try_emplace(context.pid);
    Record& record = at->second;
    if (!fresh && record.start != context.start) record = Record{};  // the pid was used again
    record.start = context.start;
    record.end = kForever;
    record.max_memory = std::max(record.max_memory, context.memory.value_or(0));
    ++record.samples;
    if (ticket.pid == context.pid) {
      record.gpu_sum += ticket.sm;
      record.memory_sum += ticket.memory;
    }
  }
  auto dead = [](const auto& entry) { return entry.second.end != kForever; };
  while (std::count_if(records_.begin(), records_.end(), dead) > static_cast<long>(kMostDead)) {
    auto oldest = records_.end();
    for (auto at = records_.begin(); at != records_.end(); ++at) {
      if (dead(*at) && (oldest == records_.end() || at->second.end < oldest->second.end)) oldest = at;
    }
    records_.erase(oldest);
  }
}

}  // namespace gpuledger::sim
