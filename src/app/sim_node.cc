#include "app/sim_node.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/file.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
constexpr size_t kLargestScenario = 256 << 20;

Result<std::string> find_library(const std::string& given) {
  if (!given.empty()) return given;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path candidates[] = {program / "sim/libnvidia-ml.so.1",
                                 program / "../lib/gpu-ledger/sim/libnvidia-ml.so.1"};
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate, ignored)) return candidate.string();
  }
  return Error{Code::kNotFound, "--backend=sim: no simulator at " + candidates[0].string() +
                                    "; build it (cmake --workflow --preset release) or name it with --nvml-library"};
}

}  // namespace

Result<std::unique_ptr<SimNode>> SimNode::prepare(const std::string& scenario, const std::string& library) {
  if (!scenario.empty()) {
    const auto text = read_file(scenario, kLargestScenario);
    if (!text.ok()) return Error{text.error().code, "--sim-scenario: " + text.error().message};
  }
  auto found = find_library(library);
  if (!found.ok()) return found.error();

  const char* temporary = std::getenv("TMPDIR");
  std::string root = std::string(temporary && *temporary ? temporary : "/tmp") + "/gpu-ledger-sim-XXXXXX";
  if (!::mkdtemp(root.data()))
    return errno_error("--backend=sim: cannot make a folder for the simulated node", root, errno);
  // The simulator reads these when it is loaded. The epoch lets its time go on when the library is closed and
  // opened again, for a driver reload or SIGUSR1.
  ::setenv("GPU_LEDGER_SIM_EPOCH", std::to_string(::time(nullptr)).c_str(), 0);
  ::setenv("GPU_LEDGER_SIM_ROOT", root.c_str(), 1);
  if (!scenario.empty()) ::setenv("GPU_LEDGER_SIM_SCENARIO", scenario.c_str(), 1);
  return std::unique_ptr<SimNode>(new SimNode(std::move(*found), std::move(root)));
}

SimNode::~SimNode() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

std::string SimNode::scenario_error() const {
  const std::unique_ptr<void, int (*)(void*)> handle(::dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL), &::dlclose);
  if (!handle) return {};
  // A library that was closed has forgotten why; it is asked to try again.
  using Start = int (*)();
  using ErrorText = const char* (*)();
  const auto start = reinterpret_cast<Start>(::dlsym(handle.get(), "nvmlInit_v2"));
  const auto error_text = reinterpret_cast<ErrorText>(::dlsym(handle.get(), "gpu_ledger_sim_error"));
  if (!start || !error_text || start() == 0) return {};
  const char* text = error_text();
  return text ? text : "";
}

}  // namespace gpuledger::app
