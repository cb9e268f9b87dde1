#include <algorithm>
#include <map>
#include <utility>

#include "expose/emit.h"
#include "expose/words.h"

// What the driver's trace of context switches says. But for the source of GPU seconds, nothing of it is there unless
// somebody asked for exact time.
namespace gpuledger::expose {
namespace {

template <typename Value>
void add_for_each_gpu(const View& view, TextWriter& out, Value value) {
  for (const DeviceSeries& device : view.devices) {
    if (device.sample != nullptr && device.sample->exact_time)
      out.add(device.labels, value(*device.sample->exact_time));
  }
}

}  // namespace

void emit_exact_time(const View& view, TextWriter& out) {
  add_for_each_gpu(view, out, [](const ExactTime& exact) { return uint64_t{exact.trusted}; });
}

void emit_device_switches(const View& view, TextWriter& out) {
  add_for_each_gpu(view, out, [](const ExactTime& exact) { return exact.switches; });
}

void emit_device_switch_seconds(const View& view, TextWriter& out) {
  add_for_each_gpu(view, out, [](const ExactTime& exact) { return exact.switching; });
}

// There whether exact time was asked for or not.
void emit_gpu_seconds_source(const View& view, TextWriter& out) {
  for (const DeviceSeries& device : view.devices) {
    const GpuTimeSource source = device.account->gpu_time_source;
    if (device.sample == nullptr || source == GpuTimeSource::kNone) continue;
    out.add(device.labels, uint64_t{1}, "source=\"" + std::string(gpu_time_source_name(source)) + "\"");
  }
}

void emit_exact_time_lost(const View& view, TextWriter& out) {
  add_for_each_gpu(view, out, [](const ExactTime& exact) { return exact.records_lost; });
}

// The trace knows a process by its pid alone, so the count is that of the last one that has it.
void emit_process_switches(const View& view, TextWriter& out) {
  std::map<std::pair<std::string, Pid>, uint64_t> newest;
  for (const ProcessSeries& series : view.processes) {
    const ProcKey& key = series.newest->identity.key;
    uint64_t& start = newest[{series.newest->gpu.text, key.pid}];
    start = std::max(start, key.start_ticks);
  }
  for (const ProcessSeries& series : view.processes) {
    const ProcKey& key = series.newest->identity.key;
    const DeviceSeries* device = view.find_device(series.newest->gpu);
    if (device == nullptr || device->sample == nullptr || !device->sample->exact_time) continue;
    if (newest[{series.newest->gpu.text, key.pid}] != key.start_ticks) continue;
    const auto& counts = device->sample->exact_time->switches_by_process;
    if (const auto count = counts.find(key.pid); count != counts.end()) out.add(series.labels, count->second);
  }
}

}  // namespace gpuledger::expose
