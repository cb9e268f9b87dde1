#pragma once

#include <memory>
#include <string>

#include "app/config.h"
#include "app/pipeline.h"
#include "app/sim_node.h"
#include "base/clock.h"
#include "base/result.h"

namespace gpuledger::app {

// Everything one node needs, put together. Order matters: the pipeline closes the driver before the simulated
// node goes away.
struct Node {
  std::unique_ptr<SimNode> sim;  // only with --backend=sim
  std::unique_ptr<Pipeline> pipeline;
  std::string summary;  // "2 GPUs (NVIDIA H200, Tesla T4), driver 580.1"
};

// Opens the driver; what is missing is one line that says what to do.
Result<Node> open_node(const Config& config, const Clock& clock);

BookingRules booking_rules(const Config& config);
PipelineOptions pipeline_options(const Config& config);

}  // namespace gpuledger::app
