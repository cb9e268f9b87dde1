// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"

namespace gpuledger::switch_trace {

// The five system calls that read the trace, to the kernel or to a simulated driver. Any thread.
class DriverDoor {
 public:
  virtual ~DriverDoor() = default;
  // A descriptor with close-on-exec, or a negative errno.
  virtual int open(const char* path) = 0;
  // 0 or a negative errno. Never EINTR.
  virtual int ioctl(int fd, unsigned long request, void* argument) = 0;
  // Read-only; nullptr: it failed.
  virtual const void* map(int fd, size_t length) = 0;
  virtual void unmap(const void* memory, size_t length) = 0;
  virtual void close(int fd) = 0;
};

// The device nodes of this machine.
std::shared_ptr<DriverDoor> open_system_door();

// The simulated driver's, by its C functions gpu_ledger_sim_door_open and so on. Error: it has none.
Result<std::shared_ptr<DriverDoor>> open_library_door(const std::string& library);

}  // namespace gpuledger::switch_trace
