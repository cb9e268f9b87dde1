// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sample/gpu_source.h"
#include "sample/nvml/nvml_calls.h"
#include "sample/nvml/nvml_device_thread.h"
#include "sample/nvml/nvml_driver.h"
#include "sample/nvml/nvml_library.h"

namespace gpuledger::nvml {

struct NvmlSourceOptions {
  std::string library;                                    // empty: libnvidia-ml.so.1
  std::vector<std::string> gpu_devices;                   // indexes or UUIDs; empty: all
  Nanoseconds sample_interval = std::chrono::seconds(1);  // until change_interval()
  Readings readings;                                      // until change_readings()
  // How long a batch waits for a GPU, at least; two intervals may be longer.
  Nanoseconds least_answer_limit = std::chrono::seconds(2);
};

struct NvmlProbe {
  struct Gpu {
    uint32_t index = 0;
    GpuUuid uuid;
    std::string model;
  };
  std::string driver;
  std::vector<Gpu> gpus;                     // after the filter
  std::vector<std::string> missing_symbols;  // optional ones
};

// Hardware through NVML. Used by one thread; has one of its own per GPU. The driver may be missing, unloaded, reloaded
// or upgraded at any time: the library is then closed and opened again, first every second, later every 30.
class NvmlSource final : public GpuSource {
 public:
  NvmlSource(NvmlSourceOptions options, LibraryLoader loader, const Clock& clock);
  ~NvmlSource() override;

  // Opens the driver and leaves it open, to report at the start what is wrong: no library, not an NVML library, driver
  // not loaded, no GPU, none of the requested GPUs. One line each, with what to do.
  Result<NvmlProbe> probe();

  SampleBatch sample(bool scan_processes) override;
  void change_interval(Nanoseconds sample_interval) override { sample_interval_ = sample_interval; }
  void change_readings(const Readings& wanted) override { readings_ = wanted; }
  std::vector<Pid> glance() override;
  void release() override;
  void resume() override;

 private:
  Status open();
  void close(const std::string& why);
  void retry_later();
  Session session() { return {driver_->library.functions, calls_}; }
  Status find_devices();
  void found_device(unsigned index, Device handle);
  bool hangs_at(unsigned index) const;
  // True if every GPU's process lists were read.
  bool sample_devices(bool scan, SampleBatch& batch);
  void add_xids(SampleBatch& batch);
  void fill_absent(SampleBatch& batch);

  const NvmlSourceOptions options_;
  const LibraryLoader loader_;
  Nanoseconds sample_interval_;
  Readings readings_;
  Calls calls_;
  const Clock& clock_;
  std::shared_ptr<Driver> driver_;                      // empty: none now
  std::vector<std::unique_ptr<DeviceThread>> devices_;  // by index; every GPU seen so far, even if it does not answer
  bool released_ = false;
  std::string trouble_;  // why there is no driver, or no GPU
  Nanoseconds retry_delay_;
  Nanoseconds next_attempt_{0};  // steady
};

std::unique_ptr<NvmlSource> make_nvml_source(NvmlSourceOptions options, const Clock& clock);

}  // namespace gpuledger::nvml
