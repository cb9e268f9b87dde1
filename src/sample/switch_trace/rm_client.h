// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "sample/switch_trace/driver_door.h"
#include "sample/switch_trace/rm_abi.h"

namespace gpuledger::switch_trace {

// One client of the kernel's resource manager and its calls. The destructor frees all objects in reverse order. Used by
// one thread.
class RmClient {
 public:
  // Opens the control node and reads the driver's version. The first object to allocate is the client itself.
  static Result<std::unique_ptr<RmClient>> open(std::shared_ptr<DriverDoor> door);
  ~RmClient();
  RmClient(const RmClient&) = delete;
  RmClient& operator=(const RmClient&) = delete;

  Handle handle() const { return client_; }
  const std::string& driver_version() const { return version_; }
  Result<std::vector<CardInfo>> list_cards();
  // Opens the GPU's node and keeps it open.
  Status open_gpu(uint32_t minor);

  // `what` is for the error: "the event buffer".
  Result<Handle> allocate(const char* what, Handle parent, uint32_t object_class, void* params, size_t size);
  Status control(const char* what, Handle object, uint32_t command, void* params, size_t size);
  void free(Handle parent, Handle object);
  // Our memory, read-only. Never nullptr.
  Result<const void*> map(const char* what, Handle memory, size_t length);

 private:
  explicit RmClient(std::shared_ptr<DriverDoor> door) : door_(std::move(door)) {}
  Status open_control();
  template <typename Argument>
  Status send(const char* what, int fd, unsigned number, Argument& argument);

  struct Mapping {
    Handle memory = 0;
    int fd = -1;
    uint64_t linear = 0;  // the kernel's name for it
    const void* address = nullptr;
    size_t length = 0;
  };
  struct Object {
    Handle parent = 0;
    Handle handle = 0;
  };
  void unmap(const Mapping& mapping);

  std::shared_ptr<DriverDoor> door_;
  int control_ = -1;
  int gpu_ = -1;
  Handle client_ = 0;
  std::string version_;
  std::vector<Mapping> mappings_;
  std::vector<Object> objects_;
};

// A status as text with its number: "the GPU is lost (0x0f)".
std::string describe_status(uint32_t status);

}  // namespace gpuledger::switch_trace
