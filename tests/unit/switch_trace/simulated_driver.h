// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "door/door_driver.h"
#include "sample/switch_trace/driver_door.h"

namespace gpuledger::switch_trace {

inline constexpr const char* kBusAddress = "00000000:3B:00.0";
inline constexpr uint32_t kMinor = 3;

// The simulated kernel driver with one GPU, as the product's door sees it. The GPU's time is the test's, but for
// what is added to it.
class SimulatedDriver final : public DriverDoor {
 public:
  explicit SimulatedDriver(const Clock& clock, const std::string& version = "580.159.04")
      : clock_(clock), driver(version, {{0, 0, 0x1a, 0}, {kMinor, 0, 0x3b, 0}}, [this](uint32_t) {
          return wrong_time.value_or(gpu_time());
        }) {}

  int open(const char* path) override { return driver.open(path); }
  int ioctl(int fd, unsigned long request, void* argument) override { return driver.ioctl(fd, request, argument); }
  const void* map(int fd, size_t length) override { return driver.map(fd, length); }
  void unmap(const void* memory, size_t length) override { driver.unmap(memory, length); }
  void close(int fd) override { driver.close(fd); }

  // The GPU's clock, in its steps of 32 ns.
  uint64_t gpu_time(Nanoseconds steady) const {
    const double drift = static_cast<double>((steady - std::chrono::hours(1)).count()) * drift_ppm * 1e-6;
    return static_cast<uint64_t>((steady + std::chrono::hours(400'000) + offset).count() +
                                 static_cast<int64_t>(drift)) &
           ~31ull;
  }
  uint64_t gpu_time() const { return gpu_time(clock_.now().steady); }

  SwitchRecord record(uint8_t tag, Pid pid, Nanoseconds at, uint32_t context = 0) const {
    SwitchRecord record{};
    record.type = kRecordType;
    record.tag = tag;
    record.pid = pid;
    record.context = context != 0 ? context : pid + 100;
    record.gpu_instance = record.compute_instance = 255;
    record.timestamp = gpu_time(at);
    return record;
  }
  void put(uint8_t tag, Pid pid, Nanoseconds at) { driver.put(kMinor, record(tag, pid, at)); }
  bool nothing_left() { return driver.open_nodes() == 0 && driver.objects() == 0 && driver.mappings() == 0; }

  const Clock& clock_;
  Nanoseconds offset{0};
  double drift_ppm = 0;
  std::optional<uint64_t> wrong_time;  // what the driver says instead; records have the right one
  sim::DoorDriver driver;
};

}  // namespace gpuledger::switch_trace
