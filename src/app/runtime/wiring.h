// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "app/config/config.h"
#include "app/runtime/pipeline.h"
#include "app/runtime/sim_node.h"
#include "base/clock.h"
#include "base/result.h"
#include "sample/dcgm/dcgm_source.h"
#include "sample/nvml/nvml_source.h"

namespace gpuledger::app {

// Everything one node needs, put together. Order matters: the pipeline closes the driver before the simulated
// node goes away.
struct Node {
  std::unique_ptr<SimNode> sim;  // only with --backend=sim
  std::unique_ptr<Pipeline> pipeline;
  std::string summary;  // "2 GPUs (NVIDIA H200, Tesla T4), driver 580.1"
};

// A call into libdcgm may take long; a running engine answers sooner.
inline constexpr Nanoseconds kPatienceWithEngine = std::chrono::seconds(10);

// The driver, real or simulated, and what it has. Order matters as above.
struct OpenDriver {
  std::unique_ptr<SimNode> sim;
  std::string library;  // empty: as the loader finds it
  std::unique_ptr<nvml::NvmlSource> source;
  nvml::NvmlProbe probe;  // of the GPUs that --gpu-devices names; never none
};

// What is missing is one line that says what to do. NVML alone, whatever --backend says of DCGM.
Result<OpenDriver> open_driver(const Config& config, const Clock& clock);
Result<Node> open_node(const Config& config, const Clock& clock);

BookingRules booking_rules(const Config& config);
PipelineOptions pipeline_options(const Config& config);
// Empty: no add-on to another exporter.
std::optional<UpstreamOptions> upstream_options(const Config& config);
dcgm::DcgmSourceOptions dcgm_options(const Config& config);

}  // namespace gpuledger::app
