// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "sample/switch_trace/driver_branch.h"
#include "sample/switch_trace/rm_client.h"
#include "sample/switch_trace/switch_ring.h"

namespace gpuledger::switch_trace {

// A GPU's PCI address: "00000000:3B:00.0" as NVML prints it. Compared by number.
struct BusAddress {
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t slot = 0;
  friend bool operator==(const BusAddress&, const BusAddress&) = default;
};
Result<BusAddress> parse_bus_address(const std::string& text);

// The GPU's clock and ours at one moment.
struct ClockPair {
  Nanoseconds gpu{0};
  Nanoseconds steady{0};
  Nanoseconds width{0};  // duration of the call: half of it is the error
};

// The trace of one GPU: opens everything for it and leaves nothing behind. Between stop() and start() the GPU is not
// traced and its processes have no cost. Used by one thread.
class TraceSession {
 public:
  static Result<std::unique_ptr<TraceSession>> open(std::shared_ptr<DriverDoor> door, const BusAddress& address);
  ~TraceSession();

  // Binds and starts the trace. The only call that needs CAP_SYS_ADMIN to see the processes of other users.
  Status start();
  void stop();

  const DriverBranch& branch() const { return branch_; }
  SwitchRing& ring() { return *ring_; }
  Result<ClockPair> read_clocks(const Clock& clock);
  // The kernel may overwrite read records.
  Status give_back_records();
  // Moves the GPU's buffer into the ring. Takes locks that other programs wait for: not in a fast loop.
  Status flush();

 private:
  explicit TraceSession(std::unique_ptr<RmClient> client) : client_(std::move(client)) {}
  Status find_gpu(const BusAddress& address);
  Status make_ring();
  Result<Handle> allocate_memory(const char* what, size_t size);
  Status make_event_buffer();
  Status bind();

  std::unique_ptr<RmClient> client_;
  DriverBranch branch_;
  Handle subdevice_ = 0;
  Handle header_memory_ = 0;
  Handle record_memory_ = 0;
  Handle event_buffer_ = 0;  // 0: not tracing
  std::unique_ptr<SwitchRing> ring_;
};

}  // namespace gpuledger::switch_trace
