#pragma once

#include <map>

#include "attribute/device_book.h"
#include "model/identity.h"
#include "model/ledger.h"
#include "model/policy.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// Who pays? Steps the books of all GPUs by one batch. Pure: no clock, no I/O; time is the batch's.
class Engine {
 public:
  explicit Engine(BookingRules rules) : rules_(rules) {}

  Ledger advance(const SampleBatch& batch, const IdentityMap& identities);
  // Takes effect with the next batch; what is booked stays.
  void change_rules(const BookingRules& rules) { rules_ = rules; }

 private:
  BookingRules rules_;
  std::map<GpuUuid, DeviceBook> books_;
  std::optional<Nanoseconds> last_idle_evaluation_;
};

}  // namespace gpuledger::attribute
