// SPDX-License-Identifier: Apache-2.0
#include "support/virtual_node.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <filesystem>

#include "app/runtime/sim_node_files.h"
#include "base/log.h"
#include "identity/resolver.h"
#include "sample/nvml/nvml_source.h"

namespace gpuledger {

Result<std::unique_ptr<VirtualNode>> VirtualNode::start(const std::string& library, const std::string& scenario,
                                                        const std::vector<std::string>& pod_labels) {
  std::unique_ptr<VirtualNode> node(new VirtualNode());
  std::string pattern = (std::filesystem::temp_directory_path() / "gpu-ledger-node-XXXXXX").string();
  node->root_ = ::mkdtemp(pattern.data());
  ::setenv("GPU_LEDGER_SIM_ROOT", node->root_.c_str(), 1);
  ::setenv("GPU_LEDGER_SIM_CLOCK", "virtual", 1);
  ::setenv("GPU_LEDGER_SIM_SCENARIO", scenario.c_str(), 1);
  (void)configure_log("error", "text");
  GL_TRY_STATUS(node->open(library, pod_labels));
  return node;
}

VirtualNode::~VirtualNode() {
  pipeline_.reset();
  std::filesystem::remove_all(root_);
}

Status VirtualNode::open(const std::string& library, const std::vector<std::string>& pod_labels) {
  void* simulator = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!simulator) return Error{Code::kNotFound, std::string("cannot load the simulator: ") + ::dlerror()};
  set_time_ = reinterpret_cast<void (*)(double)>(::dlsym(simulator, "gpu_ledger_sim_set_time"));
  set_time_(0);

  nvml::NvmlSourceOptions source_options;
  source_options.library = library;
  source_options.least_answer_limit = std::chrono::minutes(1);  // a busy machine is no GPU that hangs
  source_options.readings.pcie_traffic = true;
  auto source = nvml::make_nvml_source(source_options, clock_);
  GL_TRY_STATUS(source->probe());
  identity::NodeDirectory directory;
  directory.pods = std::make_unique<app::PodFile>(root_ + "/kubelet/pods.json", identity::PodLabelList(pod_labels));
  directory.allocations = std::make_unique<app::AllocationFile>(root_ + "/kubelet/pod-resources.json");
  directory.containers.push_back(std::make_unique<app::ContainerFile>(root_ + "/docker/containers.json"));
  directory.slurm_jobs = identity::SlurmJobs(root_ + "/slurm");
  auto resolver = std::make_unique<identity::Resolver>(identity::ProcReader(root_ + "/proc"), std::move(directory));
  app::PipelineOptions options;
  options.simulated = true;
  pipeline_ = std::make_unique<app::Pipeline>(std::move(source), std::move(resolver), BookingRules{}, options, clock_);
  pipeline_->read_boot_time_in(root_ + "/proc");
  pipeline_->count_gpus_in(root_ + "/proc/driver/nvidia/gpus");
  return ok_status();
}

std::shared_ptr<const Snapshot> VirtualNode::run_cycle(int64_t second) {
  clock_.set({std::chrono::seconds(second), kStart + std::chrono::seconds(second)});
  set_time_(static_cast<double>(second));
  return pipeline_->run_cycle();
}

}  // namespace gpuledger
