// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "app/runtime/wiring.h"
#include "base/file.h"

namespace gpuledger::app {
namespace {

using nvml::Session;

enum class Mode { kDisabled, kEnabled, kUnsupported };

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::kDisabled: return "disabled";
    case Mode::kEnabled: return "enabled";
    case Mode::kUnsupported: return "unsupported";
  }
  return "unsupported";
}

// Shut down with this object, before the library is unloaded.
class OpenLibrary {
 public:
  explicit OpenLibrary(nvml::Library library, const Clock& clock) : library_(std::move(library)), calls_(clock) {
    ready_ = calls_(library_.functions.nvmlInit_v2);
  }
  ~OpenLibrary() {
    if (ready_ == nvml::kSuccess) calls_(library_.functions.nvmlShutdown);
  }
  OpenLibrary(const OpenLibrary&) = delete;
  OpenLibrary& operator=(const OpenLibrary&) = delete;

  nvml::Return ready() const { return ready_; }
  Session session() { return {library_.functions, calls_}; }

 private:
  nvml::Library library_;
  nvml::Calls calls_;
  nvml::Return ready_;
};

Error failure(const char* symbol, nvml::Return result) {
  return {nvml::code_of(result), nvml::describe(symbol, result)};
}

Result<Mode> read_mode(Session& session, nvml::Device device) {
  unsigned current = 0, pending = 0;
  // With MIG "disabled" means that it cannot be enabled.
  const bool mig = session.call(session.fn.nvmlDeviceGetMigMode, device, &current, &pending) == nvml::kSuccess;
  if (mig && current == nvml::kFeatureEnabled) return Mode::kUnsupported;
  unsigned mode = 0;
  const nvml::Return result = session.call(session.fn.nvmlDeviceGetAccountingMode, device, &mode);
  if (nvml::means_unsupported(result)) return Mode::kUnsupported;
  if (result != nvml::kSuccess) return failure("nvmlDeviceGetAccountingMode", result);
  return mode == nvml::kFeatureEnabled ? Mode::kEnabled : Mode::kDisabled;
}

// A mode that is already right is not set again: that needs no root. Persistence mode is left to the administrator;
// without it the driver forgets accounting mode when its last client exits.
Result<Mode> set_mode(Session& session, nvml::Device device, Mode wanted) {
  const Result<Mode> now = read_mode(session, device);
  if (!now.ok() || *now == wanted || *now == Mode::kUnsupported) return now;
  const nvml::Return result =
      session.call(session.fn.nvmlDeviceSetAccountingMode, device, wanted == Mode::kEnabled ? 1u : 0u);
  if (nvml::means_unsupported(result)) return Mode::kUnsupported;
  if (result == nvml::kNoPermission) {
    return Error{Code::kPermission, nvml::describe("nvmlDeviceSetAccountingMode", result) +
                                        ": only root may change accounting mode; in a container run as user 0 with "
                                        "the capability SYS_ADMIN"};
  }
  if (result != nvml::kSuccess) return failure("nvmlDeviceSetAccountingMode", result);
  const Result<Mode> after = read_mode(session, device);
  if (after.ok() && *after != wanted)
    return Error{Code::kInternal, "the driver accepted the change but did not apply it"};
  return after;
}

Result<Mode> visit(Session& session, uint32_t index, const std::string& action) {
  nvml::Device device = nullptr;
  const nvml::Return result = session.call(session.fn.nvmlDeviceGetHandleByIndex_v2, index, &device);
  if (result != nvml::kSuccess) return failure("nvmlDeviceGetHandleByIndex_v2", result);
  if (action == "status") return read_mode(session, device);
  return set_mode(session, device, action == "on" ? Mode::kEnabled : Mode::kDisabled);
}

}  // namespace

// One line per GPU: index, UUID, model and mode, separated by tabs. A GPU without accounting is no failure: it must not
// block a node's init container.
Status accounting_command(const Config& config, const ConfigSources& /*sources*/) {
  const SystemClock clock;
  GL_TRY(driver, open_driver(config, clock));
  driver.source.reset();
  GL_TRY(library, nvml::load_library(driver.library));
  OpenLibrary open(std::move(library), clock);
  if (open.ready() != nvml::kSuccess) return failure("nvmlInit_v2", open.ready());
  Session session = open.session();

  std::string lines;
  Status outcome = ok_status();
  for (const nvml::NvmlProbe::Gpu& gpu : driver.probe.gpus) {
    const Result<Mode> mode = visit(session, gpu.index, config.argument);
    if (!mode.ok() && outcome.ok())
      outcome = Error{mode.error().code, "GPU " + std::to_string(gpu.index) + ": " + mode.error().message};
    lines += std::to_string(gpu.index) + "\t" + gpu.uuid.text + "\t" + gpu.model + "\t" +
             (mode.ok() ? mode_name(*mode) : "failed") + "\n";
  }
  const Status written = write_to_stdout(lines);
  return outcome.ok() ? written : outcome;
}

}  // namespace gpuledger::app
