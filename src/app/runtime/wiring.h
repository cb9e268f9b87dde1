// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "app/config/config.h"
#include "app/runtime/pipeline.h"
#include "app/runtime/sim_node.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/identity_source.h"
#include "sample/dcgm/dcgm_source.h"
#include "sample/nvml/nvml_source.h"

namespace gpuledger::app {

// All parts of one node, connected. Order matters: the pipeline closes the driver before the simulated node is removed.
struct Node {
  std::unique_ptr<SimNode> sim;  // only with --backend=sim
  std::unique_ptr<Pipeline> pipeline;
  std::string summary;  // "2 GPUs (NVIDIA H200, Tesla T4), driver 580.1"
};

// A call into libdcgm may take long; a running engine is faster.
inline constexpr Nanoseconds kPatienceWithEngine = std::chrono::seconds(10);

// The driver, real or simulated, and its probe. Order matters as above.
struct OpenDriver {
  std::unique_ptr<SimNode> sim;
  std::string library;  // empty: found by the loader
  std::unique_ptr<nvml::NvmlSource> source;
  nvml::NvmlProbe probe;  // of the GPUs in --gpu-devices; never none
};

// An error is one line that says what to do. Only NVML, even with --backend=dcgm.
Result<OpenDriver> open_driver(const Config& config, const Clock& clock);
Result<Node> open_node(const Config& config, const Clock& clock);

// Finds owners, from /proc and all sources of names. sim: null on a real node. Waits a few seconds for first names.
Result<std::unique_ptr<IdentitySource>> open_resolver(const Config& config, const SimNode* sim);

BookingRules booking_rules(const Config& config);
PipelineOptions pipeline_options(const Config& config);
// Empty: not in add-on mode.
std::optional<UpstreamOptions> upstream_options(const Config& config);
// Empty: nothing is pushed.
std::optional<PushOptions> push_options(const Config& config);
dcgm::DcgmSourceOptions dcgm_options(const Config& config);

}  // namespace gpuledger::app
