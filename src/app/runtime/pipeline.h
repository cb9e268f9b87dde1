// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "app/push/pusher.h"
#include "app/runtime/file_writer.h"
#include "app/runtime/history_keeper.h"
#include "app/runtime/state_keeper.h"
#include "app/runtime/upstream.h"
#include "attribute/books/engine.h"
#include "base/clock.h"
#include "base/log.h"
#include "expose/expose.h"
#include "model/identity_source.h"
#include "model/snapshot.h"
#include "sample/gpu_source.h"

namespace gpuledger::app {

struct PipelineOptions {
  Nanoseconds sample_interval = std::chrono::seconds(1);
  Nanoseconds process_scan_interval = std::chrono::seconds(10);
  expose::ExposeOptions expose;
  Readings readings;
  bool simulated = false;
  bool replayed = false;  // no series of this process, no log
  std::string textfile;   // empty: none; change() does not change it
  mode_t textfile_mode = 0644;
  bool textfile_dcgm = false;  // also write /gpu/metrics to the textfile
};

// /metrics and /gpu/metrics as one document, for --textfile-dcgm. --max-series is for both together: /gpu/metrics may
// have half, /metrics what that leaves.
std::string both_texts(const Cycle& cycle, expose::ExposeOptions shown);
// For node_exporter: the text without our own process_* series.
std::string textfile_text(const Cycle& cycle, const PipelineOptions& options);

// The pipeline: sample -> identity -> attribute -> expose. Every cycle makes one new Snapshot. Used by one thread.
class Pipeline {
 public:
  Pipeline(std::unique_ptr<GpuSource> source, std::unique_ptr<IdentitySource> resolver, const BookingRules& rules,
           PipelineOptions options, const Clock& clock, const attribute::Constants& constants = {});

  // Before the first cycle: the books continue from the keeper's state.
  void keep_state(std::unique_ptr<StateKeeper> keeper, std::string boot_id);

  // The folder in which the driver has one folder for each GPU it found.
  void count_gpus_in(std::string folder) { gpus_folder_ = std::move(folder); }

  // Before the first cycle: the /proc that says when the node booted.
  void read_boot_time_in(std::string proc_root) { proc_root_ = std::move(proc_root); }

  // Before the first cycle: /gpu/metrics is another exporter's.
  void serve_upstream(std::unique_ptr<Upstream> upstream) { upstream_ = std::move(upstream); }

  // Before the first cycle.
  void push_to(std::unique_ptr<Pusher> pusher) { pusher_ = std::move(pusher); }

  std::shared_ptr<const Snapshot> run_cycle();
  // A glance between two cycles. A new process is identified at once: it may have exited by the next cycle.
  void glance() { resolver_->meet_early(source_->glance(), clock_.now().steady); }

  void change(const BookingRules& rules, PipelineOptions options);
  void release_gpus();
  void resume_gpus();
  // Null without --textfile. Any thread.
  FileWriter* textfile() const { return textfile_.get(); }
  // Also sends the cycle of the last snapshot, and marks all series as ended. Call between cycles or after the last
  // one.
  void finish_push(const std::shared_ptr<const Cycle>& last, Nanoseconds patience);
  // Null without --state-file. Between cycles.
  StateKeeper* state_keeper() const { return state_keeper_.get(); }

 private:
  bool scan_is_due(Nanoseconds now) const;
  bool scan_interval_is_over(const std::optional<Nanoseconds>& since, Nanoseconds now) const;
  void post_textfile(const Cycle& cycle, Nanoseconds now);
  void post_push(const std::shared_ptr<const Cycle>& cycle, Nanoseconds now);
  void log_changes(const Cycle& cycle);
  void show_upstream(const std::shared_ptr<const Cycle>& cycle, Snapshot& snapshot) const;

  std::unique_ptr<GpuSource> source_;
  std::unique_ptr<IdentitySource> resolver_;
  attribute::Engine engine_;
  PipelineOptions options_;
  std::shared_ptr<const expose::ExposeOptions> shown_;  // options_.expose, shared with the snapshots
  const Clock& clock_;
  std::optional<Nanoseconds> last_scan_;
  bool rescan_wanted_ = false;
  uint64_t cycles_ = 0;
  DurationHistogram cycle_durations_;
  std::unique_ptr<FileWriter> textfile_;
  std::optional<Nanoseconds> last_textfile_;
  std::unique_ptr<StateKeeper> state_keeper_;
  std::unique_ptr<Upstream> upstream_;
  std::unique_ptr<Pusher> pusher_;
  std::optional<Nanoseconds> last_push_;
  StateLog states_;
  HistoryKeeper history_;
  LazyText history_text_;
  std::string gpus_folder_;  // empty: not counted
  std::optional<uint64_t> gpus_expected_;
  std::string proc_root_;  // empty: the boot time is not read
  std::optional<double> booted_at_;
};

}  // namespace gpuledger::app
