// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "app/runtime/exact_time.h"
#include "app/runtime/name_recorder.h"
#include "base/log.h"
#include "sample/replay/trace_file.h"
#include "sample/replay/trace_recorder.h"

namespace gpuledger::app {
namespace {

using replay::TraceFile;
using replay::TraceRecorder;

sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

// True: a signal asked to end the recording.
bool wait_until(Nanoseconds when, const Clock& clock, const sigset_t& signals) {
  for (;;) {
    const Nanoseconds left = std::max(Nanoseconds(0), when - clock.now().steady);
    const timespec patience{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    if (sigtimedwait(&signals, nullptr, &patience) > 0) return true;
    if (errno != EINTR) return false;
  }
}

// A missing trace is logged once; the recording goes on without it.
void record_trace(switch_trace::TracerThread& tracer, TraceRecorder& recorder, LogLevel missing, std::string& lines) {
  static StateLog states;
  switch_trace::TraceReport report = tracer.take_report();
  recorder.record_residency(std::move(report.bins), lines);
  if (!report.trouble.empty()) {
    states.update("exact time", "off", "recording without exact time: " + report.trouble, missing);
  }
  if (report.lost > 0) log_warn("records of the trace were lost", {{"records", report.lost}});
}

// Null: none are wanted or none can be had, which is no reason not to record.
std::unique_ptr<NameRecorder> open_names(const Config& config, const OpenDriver& driver, const GpuUuid& gpu) {
  if (config.record_names == RecordNames::kNone) return nullptr;
  const auto open = [&]() -> Result<std::unique_ptr<NameRecorder>> {
    GL_TRY(resolver, open_resolver(config, driver.sim.get()));
    for (const SourceHealth& health : resolver->health()) {
      if (health.source == "proc" && !health.up) log_warn("names of processes: " + health.reason);
    }
    return NameRecorder::open(std::move(resolver), gpu, config.record_names);
  };
  auto names = open();
  if (names.ok()) return std::move(*names);
  log_warn("recording without names: " + names.error().message);
  return nullptr;
}

// What is recorded beside the driver's answers; each may be null.
struct Beside {
  std::unique_ptr<NameRecorder> names;
  std::unique_ptr<switch_trace::TracerThread> tracer;
};

// The error of a lost GPU comes after its last lines.
Status record_lines(TraceRecorder& recorder, const Beside& beside, TraceFile& file, const Config& config,
                    const Clock& clock, const sigset_t& signals) {
  GL_TRY_STATUS(file.append(recorder.device_line()));
  const LogLevel missing_trace = config.exact_time == ExactTimeMode::kOn ? LogLevel::kWarn : LogLevel::kInfo;
  const Nanoseconds began = clock.now().steady;
  Nanoseconds due = began;
  Status seen = ok_status();
  for (bool ended = false; !ended && seen.ok();) {
    std::string lines;
    seen = recorder.poll(lines);
    if (!seen.ok() && due == began) return seen;  // no GPU at all
    if (beside.names) beside.names->record(recorder.pids(), recorder.polled_at(), recorder.t(), lines);
    if (beside.tracer) record_trace(*beside.tracer, recorder, missing_trace, lines);
    due += TraceRecorder::kPeriod;
    // A slow driver has cost readings that cannot be recovered.
    const Nanoseconds late = clock.now().steady - due;
    if (late > Nanoseconds(0)) due += (late / TraceRecorder::kPeriod + 1) * TraceRecorder::kPeriod;
    const bool over = config.record_for && due - began > *config.record_for;
    ended = over || (seen.ok() && wait_until(due, clock, signals));
    if (ended) recorder.finish(lines);
    GL_TRY_STATUS(file.append(lines));
  }
  const Status committed = file.commit();
  if (!committed.ok() || seen.ok()) return committed;
  return Error{seen.error().code, seen.error().message + "; " + config.argument + " has the data until then"};
}

}  // namespace

Status record_command(const Config& config, const ConfigSources& /*sources*/) {
  const sigset_t signals = block_signals();
  const SystemClock clock;
  GL_TRY(driver, open_driver(config, clock));
  if (config.gpu_devices.size() > 1) {
    return Error{Code::kMalformed, "a recording holds one GPU: name one with --gpu-devices"};
  }
  const nvml::NvmlProbe::Gpu gpu = driver.probe.gpus.front();
  const size_t found = driver.probe.gpus.size();

  GL_TRY(file, TraceFile::create(config.argument));
  Beside beside;
  // Before the driver is closed, because the simulated node has its /proc only until then.
  beside.names = open_names(config, driver, gpu.uuid);
  driver.source.reset();
  GL_TRY(library, nvml::load_library(driver.library));
  GL_TRY(recorder, TraceRecorder::open(std::move(library), gpu.index, clock));
  log_info(found > 1 ? "recording the first of " + std::to_string(found) + " GPUs; --gpu-devices chooses another one"
                     : std::string("recording"),
           {{"gpu", gpu.index}, {"model", gpu.model}, {"uuid", gpu.uuid.text.str()}, {"file", config.argument}});
  if (wants_exact_time(config)) {
    auto door = open_door(config, driver.library);
    if (!door.ok() && config.exact_time == ExactTimeMode::kOn) return door.error();
    if (door.ok()) {
      const switch_trace::TraceOptions options{recorder->bus_address(), config.exact_time_budget};
      GL_TRY(tracer, switch_trace::TracerThread::start(std::move(*door), options, clock).about("exact time"));
      beside.tracer = std::move(tracer);
    }
  }
  return record_lines(*recorder, beside, file, config, clock, signals);
}

}  // namespace gpuledger::app
