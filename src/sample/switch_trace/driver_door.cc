// SPDX-License-Identifier: Apache-2.0
#include "sample/switch_trace/driver_door.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/dynlib.h"

namespace gpuledger::switch_trace {
namespace {

class SystemDoor final : public DriverDoor {
 public:
  int open(const char* path) override {
    for (;;) {
      const int fd = ::open(path, O_RDWR | O_CLOEXEC);
      if (fd >= 0) return fd;
      if (errno != EINTR) return -errno;
    }
  }
  int ioctl(int fd, unsigned long request, void* argument) override {
    for (;;) {
      if (::ioctl(fd, request, argument) >= 0) return 0;
      if (errno != EINTR) return -errno;
    }
  }
  const void* map(int fd, size_t length) override {
    void* const memory = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  void unmap(const void* memory, size_t length) override { ::munmap(const_cast<void*>(memory), length); }
  void close(int fd) override { ::close(fd); }
};

class LibraryDoor final : public DriverDoor {
 public:
  explicit LibraryDoor(DynLib library) : library_(std::move(library)) {
    find("gpu_ledger_sim_door_open", open_);
    find("gpu_ledger_sim_door_ioctl", ioctl_);
    find("gpu_ledger_sim_door_map", map_);
    find("gpu_ledger_sim_door_unmap", unmap_);
    find("gpu_ledger_sim_door_close", close_);
  }
  bool whole() const { return open_ && ioctl_ && map_ && unmap_ && close_; }

  int open(const char* path) override { return open_(path); }
  int ioctl(int fd, unsigned long request, void* argument) override { return ioctl_(fd, request, argument); }
  const void* map(int fd, size_t length) override { return map_(fd, length); }
  void unmap(const void* memory, size_t length) override { unmap_(memory, length); }
  void close(int fd) override { close_(fd); }

 private:
  template <typename Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(library_.symbol(name));
  }

  DynLib library_;
  int (*open_)(const char*) = nullptr;
  int (*ioctl_)(int, unsigned long, void*) = nullptr;
  const void* (*map_)(int, size_t) = nullptr;
  void (*unmap_)(const void*, size_t) = nullptr;
  void (*close_)(int) = nullptr;
};

}  // namespace

std::shared_ptr<DriverDoor> open_system_door() {
  return std::make_shared<SystemDoor>();
}

Result<std::shared_ptr<DriverDoor>> open_library_door(const std::string& library) {
  GL_TRY(loaded, DynLib::open(library));
  auto door = std::make_shared<LibraryDoor>(std::move(loaded));
  if (!door->whole()) return Error{Code::kNotSupported, library + " has no simulated trace of context switches"};
  return std::shared_ptr<DriverDoor>(std::move(door));
}

}  // namespace gpuledger::switch_trace
