// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "attribute/books/allocation_tracker.h"
#include "attribute/books/device_book.h"
#include "attribute/state/state.h"
#include "model/identity.h"
#include "model/ledger.h"
#include "model/policy.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// Advances the books of all GPUs by one batch. Pure: no clock, no I/O; time is the batch's.
class Engine {
 public:
  // constants: of the model; only tests change them.
  explicit Engine(BookingRules rules, const Constants& constants = {}) : rules_(rules), constants_(constants) {}

  Ledger advance(const SampleBatch& batch, const IdentityMap& identities);
  // Takes effect with the next batch; what is booked stays.
  void change_rules(const BookingRules& rules) { rules_ = rules; }

  // The state over a restart. restore() comes before the first batch, with the id of the current boot. Energy used
  // since the save is booked at the first sample of each GPU.
  EngineState state() const;
  void restore(EngineState state, std::string boot_id);

 private:
  std::vector<DeviceBook*> books_by_index();

  BookingRules rules_;
  Constants constants_;
  std::map<GpuUuid, DeviceBook> books_;
  AllocationTracker allocations_;
  AllocationTracker slurm_allocations_;
  FoldedAccounts folded_;
  std::optional<Nanoseconds> last_idle_evaluation_;
  std::string boot_id_;
  uint64_t states_before_ = 0;
  uint64_t batches_ = 0;
  std::map<GpuUuid, DeviceState> remembered_;  // GPUs not sampled yet
};

}  // namespace gpuledger::attribute
