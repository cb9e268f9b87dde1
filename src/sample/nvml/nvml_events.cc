// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_events.h"

namespace gpuledger::nvml {

namespace {

// A GPU with many Xids must not block the sampler; the rest comes next cycle.
constexpr int kMostEventsPerCycle = 64;

}  // namespace

void XidEvents::open(Session& session) {
  if (!session.fn.nvmlDeviceRegisterEvents || !session.fn.nvmlEventSetWait_v2 || !session.fn.nvmlEventSetFree) return;
  const Return result = session.call(session.fn.nvmlEventSetCreate, &set_);
  if (result == kSuccess) return;
  set_ = nullptr;
  if (!means_unsupported(result)) session.call.count_failure(result);
}

void XidEvents::watch(Session& session, Device device) {
  if (!set_) return;
  const Return result = session.call(session.fn.nvmlDeviceRegisterEvents, device, kEventTypeXid, set_);
  if (result == kSuccess) {
    watching_ = true;
  } else if (!means_unsupported(result)) {
    session.call.count_failure(result);
  }
}

std::vector<std::pair<Device, uint64_t>> XidEvents::drain(Session& session) {
  std::vector<std::pair<Device, uint64_t>> xids;
  if (!watching_) return xids;
  for (int i = 0; i < kMostEventsPerCycle; ++i) {
    EventData event{};
    const Return result = session.call(session.fn.nvmlEventSetWait_v2, set_, &event, 0u);
    if (result == kTimeout) break;
    if (result != kSuccess) {
      session.call.count_failure(result);
      break;
    }
    if (event.eventType & kEventTypeXid) xids.emplace_back(event.device, event.eventData);
  }
  return xids;
}

void XidEvents::close(const FunctionTable& functions) {
  if (set_) functions.nvmlEventSetFree.pointer(set_);
  set_ = nullptr;
  watching_ = false;
}

}  // namespace gpuledger::nvml
