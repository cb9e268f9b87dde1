// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "model/snapshot.h"

namespace gpuledger::http {

inline std::shared_ptr<const Snapshot> sample_snapshot(Nanoseconds at, bool up = true) {
  auto cycle = std::make_shared<Cycle>();
  cycle->batch.at.steady = at;
  cycle->batch.health = {"nvml", up, up ? "" : "driver not loaded", {}};
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->cycle = cycle;
  snapshot->text = LazyText("# TYPE gpu_ledger_device_up gauge\ngpu_ledger_device_up 1\n");
  snapshot->openmetrics = LazyText("# TYPE gpu_ledger_device_up gauge\ngpu_ledger_device_up 1\n# EOF\n");
  snapshot->json = LazyText("{\"devices\":[]}");
  snapshot->history = LazyText("{\"gpus\":[]}");
  return snapshot;
}

}  // namespace gpuledger::http
