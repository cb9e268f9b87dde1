// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/sim_node.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/dynlib.h"
#include "base/file.h"
#include "base/memory_file.h"

namespace gpuledger::app {
namespace {

namespace fs = std::filesystem;
constexpr size_t kLargestScenario = 256 << 20;
constexpr std::string_view kFolderName = "gpu-ledger-sim-";  // + pid

struct Library {
  std::string path;
  UniqueFd file;  // of a carried one
};

Result<Library> find_library(const std::string& given, std::string_view carried) {
  if (!given.empty()) return Library{given, {}};
  if (!carried.empty()) {
    GL_TRY(file, make_memory_file("libnvidia-ml.so.1", carried).about("--backend=sim"));
    std::string path = memory_file_path(file);
    return Library{std::move(path), std::move(file)};
  }
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path candidates[] = {program / "sim/libnvidia-ml.so.1",
                                 program / "../lib/gpu-ledger/sim/libnvidia-ml.so.1"};
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate, ignored)) return Library{candidate.string(), {}};
  }
  return Error{Code::kNotFound, "--backend=sim: this build carries no simulator, and there is none at " +
                                    candidates[0].string() +
                                    "; use a release (cmake --workflow --preset release) or name it with "
                                    "--nvml-library"};
}

// A system may forbid loading the carried simulator. Reported here, because the later error would say that there is no
// NVIDIA driver.
Status check_carried(const Library& library) {
  if (!library.file) return ok_status();
  const auto loaded = DynLib::open(library.path);
  if (loaded.ok()) return ok_status();
  return Error{loaded.error().code,
               "--backend=sim: cannot load the simulator that this program carries (" + loaded.error().message +
                   "): mount /proc, allow memory files to be mapped, or name a simulator on disk with --nvml-library"};
}

// A killed program could not clean up. Folders of other users are left to them.
void remove_folders_of_the_dead(const fs::path& temporary) {
  std::error_code ignored;
  for (auto entry = fs::directory_iterator(temporary, ignored); entry != fs::directory_iterator();
       entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kFolderName)) continue;
    pid_t pid = 0;
    const char* const digits = name.data() + kFolderName.size();
    const char* const end = std::from_chars(digits, name.data() + name.size(), pid).ptr;
    struct stat folder {};
    const bool ours = end != digits && *end == '-' && ::lstat(entry->path().c_str(), &folder) == 0 &&
                      S_ISDIR(folder.st_mode) && folder.st_uid == ::geteuid();
    if (ours && pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) fs::remove_all(entry->path(), ignored);
  }
}

// A container with a read-only root often has only /dev/shm to write to.
Result<std::string> make_folder() {
  std::vector<fs::path> places = {"/tmp", "/dev/shm"};
  if (const char* given = std::getenv("TMPDIR"); given && *given) places.insert(places.begin(), given);
  std::string failures;
  for (const fs::path& place : places) {
    remove_folders_of_the_dead(place);
    std::string root = place / (std::string(kFolderName) + std::to_string(::getpid()) + "-XXXXXX");
    if (::mkdtemp(root.data())) return root;
    failures += (failures.empty() ? "" : ", ") + place.string() + ": " + std::generic_category().message(errno);
  }
  return Error{Code::kPermission, "--backend=sim: cannot make a folder for the simulated node (" + failures +
                                      "): mount an empty folder at /tmp, or name one that can be written to in TMPDIR"};
}

}  // namespace

Result<std::unique_ptr<SimNode>> SimNode::prepare(const std::string& scenario, const std::string& library,
                                                  std::string_view carried) {
  if (!scenario.empty()) GL_TRY_STATUS(read_file(scenario, kLargestScenario).about("--sim-scenario"));
  GL_TRY(found, find_library(library, carried));
  GL_TRY_STATUS(check_carried(found));

  GL_TRY(root, make_folder());
  // The simulator reads these when it is loaded. The epoch keeps its time when the library is closed and opened again,
  // for a driver reload or SIGUSR1.
  ::setenv("GPU_LEDGER_SIM_EPOCH", std::to_string(::time(nullptr)).c_str(), 0);
  ::setenv("GPU_LEDGER_SIM_ROOT", root.c_str(), 1);
  if (!scenario.empty()) ::setenv("GPU_LEDGER_SIM_SCENARIO", scenario.c_str(), 1);
  return std::unique_ptr<SimNode>(new SimNode(std::move(found.path), std::move(found.file), std::move(root)));
}

SimNode::~SimNode() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

std::string SimNode::scenario_error() const {
  const std::unique_ptr<void, int (*)(void*)> handle(::dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL), &::dlclose);
  if (!handle) return {};
  // A closed library has lost the error; it is started again.
  using Start = int (*)();
  using ErrorText = const char* (*)();
  const auto start = reinterpret_cast<Start>(::dlsym(handle.get(), "nvmlInit_v2"));
  const auto error_text = reinterpret_cast<ErrorText>(::dlsym(handle.get(), "gpu_ledger_sim_error"));
  if (!start || !error_text || start() == 0) return {};
  const char* text = error_text();
  return text ? text : "";
}

}  // namespace gpuledger::app
