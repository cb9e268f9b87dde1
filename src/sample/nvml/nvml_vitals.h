// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include "model/sample.h"
#include "sample/nvml/nvml_calls.h"
#include "sample/steady_counters.h"

namespace gpuledger::nvml {

// State of one GPU: clocks, temperatures, errors, throttling, traffic. Cheap values are read with every sample, the
// rest at scans and kept until the next. Unsupported values are tried once.
class VitalsReader {
 public:
  // Fills vitals and traffic. Call it after the activity was read, because it copies its traffic. monitored: the
  // performance monitors report traffic, now or at the next read. Returns kGpuIsLost and the like if the GPU reported
  // it, else kSuccess.
  Return read(Session& session, Device device, const Readings& wanted, bool scan, bool monitored, DeviceSample& out);

  // Resets what the GPU supports, and its values.
  void reset() { *this = VitalsReader(); }

 private:
  struct NvlinkCount {
    Nanoseconds at;  // steady
    uint64_t sent;   // KiB
    uint64_t received;
  };

  template <typename Signature, typename... Arguments>
  bool call(Session& session, const Function<Signature>& function, Device device, Arguments... arguments);
  void read_gauges(Session& session, Device device, Vitals& out);
  void read_fan(Session& session, Device device);
  void read_pcie_link(Session& session, Device device);
  void read_fields(Session& session, Device device, bool slow, Vitals& out);
  void read_pcie_traffic(Session& session, Device device);
  void step_nvlink_traffic(Nanoseconds now);
  Traffic traffic(const std::optional<Activity>& activity) const;

  std::set<std::string> unsupported_calls_;
  std::set<unsigned> unsupported_fields_;
  Return lost_ = kSuccess;  // this time
  uint64_t refused_ = 0;    // likewise
  SteadyCounters counters_;
  Vitals slow_;           // as of the last scan
  Traffic slow_traffic_;  // same
  std::optional<NvlinkCount> nvlink_;
};

}  // namespace gpuledger::nvml
