// SPDX-License-Identifier: Apache-2.0
#include "app/doctor/doctor.h"

#include <thread>

#include "app/runtime/wiring.h"
#include "app/top/exporter.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quote.h"

namespace gpuledger::app {
namespace {

constexpr size_t kLongestLine = 500;
constexpr Nanoseconds kBetweenLooks = std::chrono::seconds(1);
constexpr Nanoseconds kPatienceWithExporter = std::chrono::seconds(1);

class Report {
 public:
  // Printed at once, so that a user sees where it hangs.
  Status add(const Findings& findings) {
    std::string text;
    for (const Finding& finding : findings) {
      text += write_finding(finding);
      failed_ += finding.level == Finding::Level::kFail ? 1 : 0;
    }
    return write_to_stdout(text);
  }
  int failed() const { return failed_; }

 private:
  int failed_ = 0;
};

Findings check_driver(const Config& config, const Result<OpenDriver>& driver) {
  if (!driver.ok() && config.backend == Backend::kDcgm) {
    return {{Finding::Level::kWarn, "driver",
             driver.error().message + "; DCGM alone does not report which of several processes works"}};
  }
  if (!driver.ok()) return {{Finding::Level::kFail, "driver", driver.error().message}};
  const nvml::NvmlProbe& probe = driver->probe;
  return {{Finding::Level::kOk, "driver",
           probe.driver + " with " + std::to_string(probe.gpus.size()) +
               (config.backend == Backend::kSim ? " simulated GPUs" : " GPUs")}};
}

// in_use: container runtimes of the processes.
Status check_hardware(const Config& config, OpenDriver& driver, const identity::ProcReader& proc, Report& report,
                      std::optional<std::set<std::string>>& in_use) {
  GL_TRY_STATUS(report.add(check_symbols(driver.probe)));
  const SampleBatch first = driver.source->sample(true);
  std::this_thread::sleep_for(kBetweenLooks);
  const SampleBatch second = driver.source->sample(true);
  in_use = runtimes_in_use(second, proc);
  GL_TRY_STATUS(report.add(check_gpus(first, second)));
  GL_TRY_STATUS(report.add(check_processes(second, proc)));
  return report.add(check_exact_time(config, driver.library, second));
}

// Nothing if no exporter answers here, or one that wants TLS or a password.
Findings check_running_exporter(const Config& config) {
  const top::Exporter local{local_exporter(config.listen_addresses.front()), config.url_ca_file, kPatienceWithExporter};
  if (local.url.text.empty()) return {};
  const auto books = top::read_exporter(local, {});
  if (!books.ok()) return {};
  std::vector<SplitError> gpus;
  for (const top::Books::Gpu& gpu : books->gpus) {
    gpus.push_back({gpu.index, gpu.attribution_error, gpu.attribution_comparisons});
  }
  return {check_split_error(gpus)};
}

}  // namespace

std::string write_finding(const Finding& finding) {
  const char* level = finding.level == Finding::Level::kOk     ? "ok    "
                      : finding.level == Finding::Level::kWarn ? "warn  "
                                                               : "FAIL  ";
  return level + finding.subject + ": " + clean_text(finding.text, kLongestLine) + "\n";
}

Status doctor_command(const Config& config, const ConfigSources& /*sources*/) {
  const SystemClock clock;
  // The source's line contains what it logs.
  (void)configure_log("error", config.log_format);
  Report report;
  auto driver = open_driver(config, clock);
  GL_TRY_STATUS(report.add(check_driver(config, driver)));
  const bool simulated = driver.ok() && driver->sim;
  const bool own_proc = simulated && config.proc_root == Config{}.proc_root;
  const identity::ProcReader proc(own_proc ? driver->sim->proc_root() : config.proc_root);
  std::optional<std::set<std::string>> in_use;
  if (driver.ok()) GL_TRY_STATUS(check_hardware(config, *driver, proc, report, in_use));
  GL_TRY_STATUS(report.add(check_proc(proc)));
  std::vector<GpuUuid> gpus;
  if (driver.ok()) {
    for (const auto& gpu : driver->probe.gpus) gpus.push_back(gpu.uuid);
  }
  const Findings names =
      simulated ? Findings{{Finding::Level::kOk, "names", "those of the simulated node"}} : check_names(config, in_use);
  for (const Findings& findings :
       {check_dcgm(config), check_dcgm_exporter(config, gpus, clock), names, check_slurm_jobs(config),
        check_textfile(config), check_state_file(config), check_push(config), check_listen_addresses(config),
        check_running_exporter(config)}) {
    GL_TRY_STATUS(report.add(findings));
  }
  if (report.failed() == 0) return ok_status();
  return Error{Code::kUnavailable,
               std::to_string(report.failed()) + (report.failed() == 1 ? " check failed" : " checks failed")};
}

}  // namespace gpuledger::app
