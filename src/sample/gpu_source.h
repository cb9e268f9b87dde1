// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/sample.h"

namespace gpuledger {

// The one door to GPU hardware. Used by the sampler thread alone.
class GpuSource {
 public:
  virtual ~GpuSource() = default;

  // One look at every GPU. Never fails as a whole: what could not be read is absent, and
  // SampleBatch::health says why. Opens or reopens the driver itself when it is (or was) gone.
  // scan_processes: read the process lists anew; also done when an unknown pid shows up.
  virtual SampleBatch sample(bool scan_processes) = 0;

  // A short look at who is there and what is busy, between two samples; the next sample hands on what was seen. Tells
  // who is there, so that those who will be gone by then can be asked who they are. Nobody for a source that cannot
  // look so often.
  virtual std::vector<Pid> glance() { return {}; }

  // How often sample() is called from now on. Nothing for a source that does not care.
  virtual void change_interval(Nanoseconds /*sample_interval*/) {}

  // What is worth reading from now on. Nothing for a source that reads what it reads.
  virtual void change_readings(const Readings& /*wanted*/) {}

  // Lets the driver go (for MIG changes and driver upgrades); sample() then only says so, until resume().
  virtual void release() = 0;
  virtual void resume() = 0;
};

}  // namespace gpuledger
