#pragma once

#include <memory>
#include <optional>

#include "attribute/engine.h"
#include "base/clock.h"
#include "base/log.h"
#include "expose/expose.h"
#include "identity/resolver.h"
#include "model/snapshot.h"
#include "sample/gpu_source.h"

namespace gpuledger::app {

struct PipelineOptions {
  Nanoseconds sample_interval = std::chrono::seconds(1);
  Nanoseconds process_scan_interval = std::chrono::seconds(10);
  expose::ExposeOptions expose;
  bool simulated = false;
  std::string textfile;  // empty: none
};

// What node_exporter reads: the text without our own process_* series.
Status write_textfile(const std::string& path, const Cycle& cycle, expose::ExposeOptions options);

// The straight line: sample -> identity -> attribute -> expose. Every cycle ends in one new Snapshot.
// Used by one thread.
class Pipeline {
 public:
  Pipeline(std::unique_ptr<GpuSource> source, std::unique_ptr<identity::Resolver> resolver, const BookingRules& rules,
           PipelineOptions options, const Clock& clock);

  std::shared_ptr<const Snapshot> run_cycle();

  void change(const BookingRules& rules, PipelineOptions options);
  void release_gpus();
  void resume_gpus();
  const SourceHealth& textfile_health() const { return textfile_health_; }
  // So that nobody reads numbers of a program that has ended.
  void remove_textfile();

 private:
  bool scan_is_due(Nanoseconds now) const;
  void log_changes(const Cycle& cycle);

  std::unique_ptr<GpuSource> source_;
  std::unique_ptr<identity::Resolver> resolver_;
  attribute::Engine engine_;
  PipelineOptions options_;
  const Clock& clock_;
  std::optional<Nanoseconds> last_scan_;
  bool rescan_wanted_ = false;
  uint64_t cycles_ = 0;
  DurationHistogram cycle_durations_;
  SourceHealth textfile_health_{.source = "textfile", .up = true, .reason = {}, .errors = {}};
  StateLog states_;
};

}  // namespace gpuledger::app
