// SPDX-License-Identifier: Apache-2.0
// Events on the simulated driver's GPUs, and the faults that a test switches on.
#include <algorithm>
#include <cstring>

#include "door/door_driver.h"

namespace gpuledger::sim {

using namespace switch_trace;

void DoorDriver::put(uint32_t minor, SwitchRecord record) {
  {
    std::lock_guard lock(mutex_);
    record.sequence = sequences_[minor]++;
  }
  put_as_is(minor, record);
}

void DoorDriver::put_as_is(uint32_t minor, const SwitchRecord& record) {
  std::lock_guard lock(mutex_);
  for (auto& [handle, buffer] : objects_) {
    if (buffer.object_class != kClassEventBuffer || buffer.minor != minor || !buffer.bound || !buffer.enabled) continue;
    RingHeader* header = header_of(buffer);
    const uint32_t next = (header->record_put + 1) % buffer.ring.record_count;
    if (next == header->record_get) {
      __atomic_fetch_add(&header->record_drops, 1, __ATOMIC_RELEASE);
      continue;
    }
    char* records = find(buffer.ring.record_memory)->memory.data();
    std::memcpy(records + size_t{header->record_put} * sizeof record, &record, sizeof record);
    __atomic_store_n(&header->record_put, next, __ATOMIC_RELEASE);
  }
}

void DoorDriver::set_sequence(uint32_t minor, uint16_t next) {
  std::lock_guard lock(mutex_);
  sequences_[minor] = next;
}

void DoorDriver::skip_sequence(uint32_t minor, uint32_t count) {
  std::lock_guard lock(mutex_);
  sequences_[minor] = static_cast<uint16_t>(sequences_[minor] + count);
}

bool DoorDriver::traced(uint32_t minor) {
  std::lock_guard lock(mutex_);
  return std::any_of(objects_.begin(), objects_.end(), [&](const auto& entry) {
    return entry.second.object_class == kClassEventBuffer && entry.second.minor == minor && entry.second.bound;
  });
}

void DoorDriver::fail(const Fault& fault) {
  std::lock_guard lock(mutex_);
  fault_ = fault;
  calls_ = 0;
}

void DoorDriver::refuse_bind(uint32_t minor, uint32_t status, uint32_t reason) {
  std::lock_guard lock(mutex_);
  refused_binds_[minor] = {status, reason};
}

void DoorDriver::set_gpu_status(uint32_t minor, uint32_t status) {
  std::lock_guard lock(mutex_);
  gpu_statuses_[minor] = status;
}

void DoorDriver::set_put(uint32_t put) {
  std::lock_guard lock(mutex_);
  for (auto& [handle, buffer] : objects_) {
    if (buffer.object_class == kClassEventBuffer)
      __atomic_store_n(&header_of(buffer)->record_put, put, __ATOMIC_RELEASE);
  }
}

size_t DoorDriver::calls() {
  std::lock_guard lock(mutex_);
  return calls_;
}

size_t DoorDriver::open_nodes() {
  std::lock_guard lock(mutex_);
  return nodes_.size();
}

size_t DoorDriver::objects() {
  std::lock_guard lock(mutex_);
  return objects_.size();
}

size_t DoorDriver::mappings() {
  std::lock_guard lock(mutex_);
  return mapped_.size();
}

size_t DoorDriver::move_gets() {
  std::lock_guard lock(mutex_);
  return move_gets_;
}

std::vector<uint32_t> DoorDriver::controls() {
  std::lock_guard lock(mutex_);
  return controls_;
}

}  // namespace gpuledger::sim
