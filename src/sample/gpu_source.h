// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/sample.h"

namespace gpuledger {

// The interface to GPU hardware. Used only by the sampler thread.
class GpuSource {
 public:
  virtual ~GpuSource() = default;

  // Samples every GPU. Never fails as a whole: unreadable values are absent, and SampleBatch::health says why. Opens or
  // reopens the driver itself if it is lost. scan_processes: read the process lists again; also done when an unknown
  // pid appears.
  virtual SampleBatch sample(bool scan_processes) = 0;

  // A glance between two samples: reads processes and activity. The next sample contains the readings. Returns the pids
  // that run now, so that short processes can be identified. Empty for a source that cannot read so often.
  virtual std::vector<Pid> glance() { return {}; }

  // How often sample() is called from now on. Ignored if not needed.
  virtual void change_interval(Nanoseconds /*sample_interval*/) {}

  // Which values to read from now on. Ignored by a source with a fixed set.
  virtual void change_readings(const Readings& /*wanted*/) {}

  // Closes the driver (for MIG changes and driver upgrades); sample() only says so until resume().
  virtual void release() = 0;
  virtual void resume() = 0;
};

}  // namespace gpuledger
