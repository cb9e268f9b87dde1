// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/sample.h"

namespace gpuledger::switch_trace {

// Compares the trace of one GPU with NVML, batch by batch. Pure.
class SelfTest {
 public:
  // fresh: the bins of this batch. Empty: no disagreement seen. Otherwise the reason as text.
  std::string compare(const DeviceSample& device, const std::vector<ResidencyBin>& fresh, bool scanned,
                      Nanoseconds now);

  // It was compared for long enough to be trusted.
  bool passed(Nanoseconds now) const;
  // A process works that is not in the trace: maybe the driver holds records back.
  bool suspicious() const { return suspicious_; }

 private:
  std::string compare_sums(const std::vector<ResidencyBin>& bins) const;
  std::string compare_lists(const DeviceSample& device, bool scanned, Nanoseconds now);
  std::string compare_activity(const DeviceSample& device, const std::vector<ResidencyBin>& bins);
  std::string compare_samples(const DeviceSample& device, const std::vector<ResidencyBin>& bins);

  // A pid in the trace that the driver's lists do not have.
  struct Stranger {
    Nanoseconds last_resident{0};
    unsigned scans = 0;  // without it, although it was resident before and after
    Nanoseconds scanned_at{0};
  };
  std::optional<Nanoseconds> began_;
  std::map<Pid, Stranger> strangers_;
  std::map<Pid, unsigned> caught_;  // batches in a row where only NVML saw it active
  unsigned overfull_ = 0;           // batches in a row in which the GPU worked without a resident process
  bool suspicious_ = false;
};

}  // namespace gpuledger::switch_trace
