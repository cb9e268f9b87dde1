// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_nvml.h"
#include "sample/nvml/nvml_source.h"
#include "support/manual_clock.h"

namespace gpuledger::nvml {

using namespace std::chrono_literals;

// A source over the fake driver with GPU-0.
class SourceTest : public ::testing::Test {
 protected:
  SourceTest() {
    nvml_.clock = &clock_;
    options_.least_answer_limit = 1min;  // a busy machine is no GPU that hangs
  }
  ~SourceTest() override {
    source_.reset();
    EXPECT_EQ(nvml_.initialized, 0);
    EXPECT_EQ(nvml_.event_sets, 0);
    EXPECT_TRUE(nvml_.gpm_samples.empty());
  }

  FakeGpu& gpu(size_t i = 0) {
    if (nvml_.gpus.empty()) nvml_.add_gpu("GPU-0");
    return *nvml_.gpus.at(i);
  }
  NvmlSource& source() {
    if (!source_) source_ = std::make_unique<NvmlSource>(options_, nvml_.loader(), clock_);
    return *source_;
  }
  int64_t wall_us() const { return clock_.now().wall.count() / 1000; }
  // The cycle after `later`.
  SampleBatch sample(bool scan = false, Nanoseconds later = 1s) {
    clock_.advance(later);
    return source().sample(scan);
  }
  // One driver sample every 200 ms for the next `time`, all of `pid` (0: nobody); ends where the time does.
  void work(unsigned pid, unsigned sm, Nanoseconds time = 1s, int64_t clock_offset_us = 0) {
    for (int64_t t = 200'000; t <= time.count() / 1000; t += 200'000) {
      gpu().ring.push_back({wall_us() + t - clock_offset_us - 5'000, pid, sm});
    }
  }
  static const ProcessSample* find(const DeviceSample& device, Pid pid) {
    for (const ProcessSample& p : device.processes) {
      if (p.pid == pid) return &p;
    }
    return nullptr;
  }
  static double sm(const SampleBatch& batch, Pid pid) {
    const ProcessSample* p = find(batch.devices.at(0), pid);
    return p ? p->use.sm.value : -1;
  }

  FakeNvml nvml_;
  ManualClock clock_{5000s, 1'700'000'000s};
  NvmlSourceOptions options_;
  std::unique_ptr<NvmlSource> source_;
};

}  // namespace gpuledger::nvml
