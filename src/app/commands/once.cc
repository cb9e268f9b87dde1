// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "app/runtime/textfile.h"
#include "app/runtime/wiring.h"
#include "base/file.h"

namespace gpuledger::app {
namespace {

constexpr Nanoseconds kPatienceAtEnd = std::chrono::seconds(10);

}  // namespace

// For CronJobs: two samples, for rates and a first step in the books, then the metrics.
Status once_command(const Config& config, const ConfigSources& /*sources*/) {
  const SystemClock clock;
  Config quiet = config;
  quiet.textfile.clear();  // written below, from the second sample
  // One short run cannot detect idleness. With a state file each run is one evaluation of many.
  quiet.idle_interval = config.state_file.empty() ? Nanoseconds::max() : config.sample_interval;
  // A trace is tested for two seconds before it is used.
  if (config.exact_time == ExactTimeMode::kAuto) quiet.exact_time = ExactTimeMode::kOff;
  GL_TRY(node, open_node(quiet, clock));

  (void)node.pipeline->run_cycle();
  std::this_thread::sleep_for(config.sample_interval);
  const auto snapshot = node.pipeline->run_cycle();
  if (StateKeeper* keeper = node.pipeline->state_keeper()) {
    const bool ended = keeper->finish(kPatienceAtEnd);
    if (const SourceHealth health = keeper->health(); !ended || !health.up) {
      return Error{Code::kUnavailable, "--state-file: " + (ended ? health.reason : "the file system does not answer")};
    }
  }
  if (!snapshot->cycle->batch.health.up) return Error{Code::kUnavailable, snapshot->cycle->batch.health.reason};

  if (!config.textfile.empty()) {
    remove_left_temporaries(config.textfile);
    return Textfile(config.textfile_mode)
        .write(config.textfile, textfile_text(*snapshot->cycle, pipeline_options(config)));
  }
  return write_to_stdout(config.textfile_dcgm ? both_texts(*snapshot->cycle, pipeline_options(config).expose)
                                              : snapshot->text.get());
}

}  // namespace gpuledger::app
