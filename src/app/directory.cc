#include "app/directory.h"

#include "identity/node_files.h"

namespace gpuledger::app {
namespace {

identity::NodeDirectory simulated_directory(const Config& config, const SimNode& sim) {
  identity::NodeDirectory directory;
  directory.pods = std::make_unique<identity::PodFile>(sim.pod_list(), config.pod_labels);
  directory.allocations = std::make_unique<identity::AllocationFile>(sim.pod_resources());
  directory.containers.push_back(std::make_unique<identity::ContainerFile>(sim.docker_list()));
  return directory;
}

}  // namespace

identity::NodeDirectory open_directory(const Config& config, const SimNode* sim) {
  if (sim && config.kubernetes.value_or(true)) return simulated_directory(config, *sim);
  return {};
}

}  // namespace gpuledger::app
