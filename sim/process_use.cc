// SPDX-License-Identifier: Apache-2.0
#include "process_use.h"

namespace gpuledger::sim {

UseReport use_since(const GpuState& state, Millis after) {
  UseReport report;
  auto of = [&](unsigned pid, Millis t) -> ProcessUse& {
    for (ProcessUse& use : report.processes) {
      if (use.pid == pid) {
        use.newest = t;
        return use;
      }
    }
    report.processes.push_back({pid, t});
    return report.processes.back();
  };
  for (const Ticket& ticket : state.tickets) {
    if (ticket.t <= after) continue;
    ++report.tickets;
    if (ticket.pid != 0) {
      ProcessUse& use = of(ticket.pid, ticket.t);
      use.sm += ticket.sm;
      use.memory += ticket.memory;
    }
    if (ticket.encoder_pid != 0 && ticket.encoder > 0) of(ticket.encoder_pid, ticket.t).encoder += ticket.encoder;
    if (ticket.decoder_pid != 0 && ticket.decoder > 0) of(ticket.decoder_pid, ticket.t).decoder += ticket.decoder;
  }
  return report;
}

}  // namespace gpuledger::sim
