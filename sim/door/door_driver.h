// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sample/switch_trace/rm_abi.h"

namespace gpuledger::sim {

// The part of a simulated kernel driver that the context-switch trace uses: device nodes, clients and their objects,
// memory, rings. It is strict: calls that would harm the real driver are refused. Any thread.
class DoorDriver {
 public:
  struct Card {
    uint32_t minor = 0;
    uint32_t domain = 0;
    uint8_t bus = 0, slot = 0;
  };
  // The next calls of open, ioctl and map are counted from 0; this one fails.
  struct Fault {
    size_t call = 0;
    int error = 0;        // an errno; of a map: any
    uint32_t status = 0;  // of an ioctl that has one
  };

  // The GPU's clock, in ns.
  using ClockOf = std::function<uint64_t(uint32_t minor)>;

  DoorDriver(std::string version, std::vector<Card> cards, ClockOf clock)
      : version_(std::move(version)), cards_(std::move(cards)), clock_(std::move(clock)) {}

  // The calls of DriverDoor.
  int open(const char* path);
  int ioctl(int fd, unsigned long request, void* argument);
  const void* map(int fd, size_t length);
  void unmap(const void* memory, size_t length);
  void close(int fd);

  // Puts a record into the rings of all that trace the GPU, with the next sequence number of each GPU.
  void put(uint32_t minor, switch_trace::SwitchRecord record);
  // Unchanged, even if it is wrong.
  void put_as_is(uint32_t minor, const switch_trace::SwitchRecord& record);
  void set_sequence(uint32_t minor, uint16_t next);
  void skip_sequence(uint32_t minor, uint32_t count);
  bool traced(uint32_t minor);

  void fail(const Fault& fault);
  void refuse_bind(uint32_t minor, uint32_t status, uint32_t reason);  // status 0: no longer
  // Every call about this GPU gets this status; 0: none.
  void set_gpu_status(uint32_t minor, uint32_t status);
  void set_put(uint32_t put);  // in every ring's header, valid or not
  // Called without the lock at UPDATE_GET and FLUSH.
  std::function<void()> on_move_get, on_flush;

  size_t calls();
  size_t open_nodes();
  size_t objects();
  size_t mappings();
  size_t move_gets();
  std::vector<uint32_t> controls();  // every control that was sent, in its order

 private:
  struct Node {
    int32_t minor = -1;  // -1: the control node
    int control = -1;    // of a GPU's node: tied to
    switch_trace::Handle memory = 0;
  };
  struct Object {
    uint32_t object_class = 0;
    switch_trace::Handle client = 0, parent = 0;
    int fd = -1;
    std::vector<char> memory;
    uint32_t minor = 0;
    switch_trace::EventBufferParams ring{};
    bool bound = false, enabled = false, mapped = false;
  };

  int tell_version(switch_trace::VersionQuery& query) const;
  int list_cards(switch_trace::CardInfo* cards) const;
  uint32_t allocate(int fd, switch_trace::RmAlloc& request);
  uint32_t check_event_buffer(const switch_trace::EventBufferParams& params);
  uint32_t control(switch_trace::RmControl& request);
  uint32_t bind(Object& subdevice, switch_trace::BindParams& params);
  uint32_t control_event_buffer(Object& buffer, const switch_trace::RmControl& request);
  uint32_t free_object(switch_trace::Handle handle);
  uint32_t map_memory(const switch_trace::RmMap& request);
  uint32_t gpu_status(uint32_t minor) const;
  Object* find(switch_trace::Handle handle);
  switch_trace::RingHeader* header_of(const Object& buffer);
  bool fails_now(int* error, uint32_t* status);

  std::mutex mutex_;
  const std::string version_;
  const std::vector<Card> cards_;
  const ClockOf clock_;
  std::map<int, Node> nodes_;
  std::map<switch_trace::Handle, Object> objects_;
  std::map<const void*, size_t> mapped_;
  std::map<uint32_t, uint16_t> sequences_;
  std::map<uint32_t, uint32_t> gpu_statuses_;
  int next_fd_ = 1000;
  switch_trace::Handle next_handle_ = 0xC1D00001;
  size_t calls_ = 0;
  size_t move_gets_ = 0;
  std::vector<uint32_t> controls_;
  std::optional<Fault> fault_;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> refused_binds_;  // by minor: status and reason
};

}  // namespace gpuledger::sim
