// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>

#include "app/doctor/doctor.h"
#include "app/runtime/wiring.h"
#include "task/leavable_thread.h"

namespace gpuledger::app {
namespace {

using Level = Finding::Level;
constexpr const char* kEngine = "dcgm";
constexpr const char* kExporter = "dcgm-exporter";
constexpr auto kPatienceWithExporter = std::chrono::seconds(6);  // a little more than the connect timeout

Finding ask_engine(const dcgm::DcgmSourceOptions& options) {
  const auto library = dcgm::load_library(options.library);
  if (!library.ok()) return {Level::kFail, kEngine, library.error().message};
  dcgm::CallBook book;
  const auto engine = dcgm::Connection::open(*library, options.where, book);
  if (!engine.ok()) return {Level::kFail, kEngine, engine.error().message};
  unsigned ids[dcgm::kMostDevices] = {};
  int count = 0;
  const dcgm::Return result =
      (*engine)->call("dcgmGetAllDevices", (*engine)->functions().dcgmGetAllDevices, ids, &count);
  if (result != dcgm::kOk) return {Level::kFail, kEngine, dcgm::describe("dcgmGetAllDevices", result)};
  if (count <= 0) {
    return {Level::kFail, kEngine,
            "the engine answers and has no GPU: nvidia-smi must work where nv-hostengine runs, then restart it"};
  }
  return {Level::kOk, kEngine,
          "library " + (*library)->version + ", engine " + (*engine)->engine_version() + " with " +
              std::to_string(count) + (count == 1 ? " GPU" : " GPUs")};
}

bool names_one_of(const expose::UpstreamText& text, const std::vector<GpuUuid>& gpus) {
  const auto is_ours = [&](const expose::UpstreamLabel& label) {
    return (label.name == "uuid" || label.name == "UUID") &&
           std::any_of(gpus.begin(), gpus.end(), [&](const GpuUuid& gpu) { return gpu.text == label.value; });
  };
  for (const expose::UpstreamFamily& family : text.families) {
    for (const expose::UpstreamSeries& series : family.series) {
      if (std::any_of(series.labels.begin(), series.labels.end(), is_ours)) return true;
    }
  }
  return false;
}

}  // namespace

Findings check_dcgm(const Config& config) {
  if (config.backend != Backend::kDcgm) return {};
  // A call into libdcgm may take a minute and cannot be cancelled, so its thread may be left behind.
  const auto answer = std::make_shared<std::optional<Finding>>();
  task::LeavableThread thread;
  const Status started =
      thread.start([answer, options = dcgm_options(config)] { answer->emplace(ask_engine(options)); });
  if (!started.ok()) return {{Level::kFail, kEngine, started.error().message}};
  if (thread.end(kPatienceWithEngine)) return {**answer};
  if (config.dcgm_embedded) {
    return {{Level::kFail, kEngine, "the engine inside libdcgm does not start: try a running one, --dcgm-address"}};
  }
  return {{Level::kFail, kEngine,
           "the engine accepted the connection but does not answer: restart nv-hostengine; until then gpu-ledger runs "
           "without it"}};
}

Findings check_dcgm_exporter(const Config& config, const std::vector<GpuUuid>& gpus, const Clock& clock) {
  auto options = upstream_options(config);
  if (!options) return {};
  const Upstream upstream(std::move(*options), clock);
  if (!upstream.started().ok()) return {{Level::kFail, kExporter, upstream.started().error().message}};
  if (!upstream.wait(kPatienceWithExporter)) {
    return {{Level::kFail, kExporter, "no answer within 6 s: check the name and its DNS, or the folder's mount"}};
  }
  const SourceHealth health = upstream.health();
  const auto text = upstream.view(clock.now());
  if (!health.up || !text) return {{Level::kFail, kExporter, health.reason}};
  uint64_t faults = 0;
  for (const uint64_t count : text->faults) faults += count;
  if (faults > 0) {
    return {{Level::kWarn, kExporter,
             std::to_string(faults) +
                 " of its lines are wrong and left out; gpu_ledger_source_errors_total{source=\"dcgm-exporter\"} "
                 "says in which way"}};
  }
  if (!gpus.empty() && !names_one_of(*text, gpus)) {
    return {{Level::kWarn, kExporter,
             "none of its lines is about a GPU of this node, so none gets a pod: name the exporter of this node, not a "
             "Service of them all"}};
  }
  return {{Level::kOk, kExporter, "answers with " + std::to_string(text->families.size()) + " metrics"}};
}

}  // namespace gpuledger::app
