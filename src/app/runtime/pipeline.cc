// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/pipeline.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "app/runtime/self_stats.h"
#include "app/runtime/textfile.h"
#include "base/text.h"
#include "expose/upstream_write.h"
#include "identity/proc_reader.h"
#include "sample/impossible_power.h"

namespace gpuledger::app {
namespace {

constexpr Nanoseconds kPatienceAtStart = std::chrono::seconds(10);

std::optional<uint64_t> count_folders(const std::string& folder) {
  std::error_code failed;
  uint64_t count = 0;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    ++count;
  }
  return failed ? std::nullopt : std::optional(count);
}

std::optional<double> boot_time_in(const std::string& proc_root) {
  const auto boot = identity::read_boot_time(proc_root);
  return boot.ok() ? std::optional(*boot) : std::nullopt;
}

size_t count_samples(std::string_view text) {
  size_t count = 0;
  while (!text.empty()) count += take_until(text, '\n').starts_with('#') ? 0 : 1;
  return count;
}

}  // namespace

std::string both_texts(const Cycle& cycle, expose::ExposeOptions shown) {
  const size_t most = shown.max_series;
  shown.max_series = (most + 1) / 2;  // 0 stays 0
  const std::string of_gpus = expose::write_gpu_text(cycle, shown);
  shown.max_series = most == 0 ? 0 : most - std::min(most - 1, count_samples(of_gpus));
  return expose::write_text(cycle, shown) + of_gpus;
}

std::string textfile_text(const Cycle& cycle, const PipelineOptions& options) {
  expose::ExposeOptions shown = options.expose;
  shown.own_process_metrics = false;
  return options.textfile_dcgm ? both_texts(cycle, shown) : expose::write_text(cycle, shown);
}

Pipeline::Pipeline(std::unique_ptr<GpuSource> source, std::unique_ptr<IdentitySource> resolver,
                   const BookingRules& rules, PipelineOptions options, const Clock& clock,
                   const attribute::Constants& constants)
    : source_(std::move(source)),
      resolver_(std::move(resolver)),
      engine_(rules, constants),
      options_(std::move(options)),
      shown_(std::make_shared<const expose::ExposeOptions>(options_.expose)),
      clock_(clock) {
  if (options_.textfile.empty()) return;
  textfile_ = std::make_unique<FileWriter>(
      "textfile", options_.textfile,
      [file = std::make_shared<Textfile>(options_.textfile_mode)](const std::string& path, std::string_view text) {
        return file->write(path, text);
      });
}

void Pipeline::keep_state(std::unique_ptr<StateKeeper> keeper, std::string boot_id) {
  engine_.restore(keeper->take_found(), std::move(boot_id));
  state_keeper_ = std::move(keeper);
}

bool Pipeline::scan_is_due(Nanoseconds now) const {
  return rescan_wanted_ || scan_interval_is_over(last_scan_, now);
}

bool Pipeline::scan_interval_is_over(const std::optional<Nanoseconds>& since, Nanoseconds now) const {
  // The nearest cycle: one that comes slightly early must not delay the scan by a whole cycle.
  return !since || now - *since + options_.sample_interval / 2 >= options_.process_scan_interval;
}

std::shared_ptr<const Snapshot> Pipeline::run_cycle() {
  const Nanoseconds began = clock_.now().steady;
  const bool scan = scan_is_due(began);

  auto cycle = std::make_shared<Cycle>();
  cycle->number = ++cycles_;
  cycle->simulated = options_.simulated;
  cycle->batch = source_->sample(scan);
  leave_out_impossible_power(cycle->batch);
  cycle->identities = resolver_->resolve(cycle->batch);
  cycle->ledger = engine_.advance(cycle->batch, *cycle->identities);
  if (state_keeper_) state_keeper_->keep(engine_.state(), began);
  if (!options_.replayed) cycle->self = read_self_stats();
  rescan_wanted_ = cycle->identities->rescan_wanted;
  if (cycle->batch.processes_scanned) last_scan_ = began;
  if (scan && !gpus_folder_.empty()) gpus_expected_ = count_folders(gpus_folder_);
  cycle->gpus_expected = gpus_expected_;
  // Again with every scan: it changes if the clock is set, as after a boot without a clock of its own.
  if (scan && !proc_root_.empty()) booted_at_ = boot_time_in(proc_root_);
  cycle->booted_at = booted_at_;

  cycle->sources.push_back(cycle->batch.health);
  for (const SourceHealth& health : cycle->batch.more_health) cycle->sources.push_back(health);
  for (SourceHealth& health : resolver_->health()) cycle->sources.push_back(std::move(health));
  if (textfile_) cycle->sources.push_back(textfile_->health());
  if (state_keeper_) cycle->sources.push_back(state_keeper_->health());
  if (upstream_) cycle->sources.push_back(upstream_->health());
  if (pusher_) {
    for (SourceHealth& health : pusher_->health()) cycle->sources.push_back(std::move(health));
    cycle->push = pusher_->stats();
  }
  // A cycle cannot contain its own duration; the next one does.
  cycle->cycle_durations = cycle_durations_;
  if (!options_.replayed) log_changes(*cycle);
  if (textfile_) post_textfile(*cycle, began);

  auto snapshot = std::make_shared<Snapshot>();
  // The bytes are made on the client's thread, from immutable data: an unused format costs nothing.
  const auto deferred = [&](auto write) {
    return LazyText([cycle, options = shown_, write] { return write(*cycle, *options); });
  };
  snapshot->text = deferred(expose::write_text);
  snapshot->openmetrics = deferred(expose::write_openmetrics);
  snapshot->json = deferred(expose::write_json);
  snapshot->gpu_text = deferred(expose::write_gpu_text);
  snapshot->gpu_openmetrics = deferred(expose::write_gpu_openmetrics);
  snapshot->serves_gpu = upstream_ || shown_->collectors.contains("dcgm") || shown_->collectors.contains("dcgm-modern");
  if (upstream_) show_upstream(cycle, *snapshot);
  if (!options_.replayed && history_.add(*cycle)) {
    history_text_ = LazyText([history = history_.history()] { return expose::write_history(*history); });
  }
  snapshot->history = history_text_;
  if (pusher_) post_push(cycle, began);
  snapshot->cycle = std::move(cycle);
  cycle_durations_.observe(std::chrono::duration<double>(clock_.now().steady - began).count());
  return snapshot;
}

void Pipeline::show_upstream(const std::shared_ptr<const Cycle>& cycle, Snapshot& snapshot) const {
  static const auto kNothing = std::make_shared<const expose::UpstreamText>();
  const auto fresh = upstream_->view(cycle->batch.at);
  const auto deferred = [&](Format format) {
    return LazyText([cycle, text = fresh ? fresh : kNothing, options = shown_, format] {
      return expose::write_upstream(*text, *cycle, *options, format);
    });
  };
  snapshot.gpu_text = deferred(Format::kText);
  snapshot.gpu_openmetrics = deferred(Format::kOpenMetrics);
}

void Pipeline::post_textfile(const Cycle& cycle, Nanoseconds now) {
  // While the driver is lost, a scan is due in every cycle and none is done.
  if (!cycle.batch.processes_scanned && !scan_interval_is_over(last_textfile_, now)) return;
  last_textfile_ = now;
  textfile_->post(std::make_shared<const std::string>(textfile_text(cycle, options_)));
  // The first write is waited for, so that serve() can fail if the path is wrong.
  if (cycle.number == 1) (void)textfile_->wait(kPatienceAtStart);
}

void Pipeline::post_push(const std::shared_ptr<const Cycle>& cycle, Nanoseconds now) {
  // The nearest cycle, as for scans.
  if (last_push_ && now - *last_push_ + options_.sample_interval / 2 < pusher_->interval()) return;
  last_push_ = now;
  pusher_->post(cycle, shown_);
}

void Pipeline::finish_push(const std::shared_ptr<const Cycle>& last, Nanoseconds patience) {
  if (pusher_) pusher_->finish(last, shown_, patience);
}

void Pipeline::log_changes(const Cycle& cycle) {
  // A source that works at start is not logged.
  const auto level = [&](bool up) {
    return !up ? LogLevel::kWarn : cycle.number == 1 ? LogLevel::kDebug : LogLevel::kInfo;
  };
  for (const SourceHealth& source : cycle.sources) {
    if (source.undecided) continue;  // else the reason that follows would not be a change
    if (!source.up && !source.needed) {
      states_.update(source.source, "not needed", "source fails, and is not needed: " + source.reason,
                     LogLevel::kDebug);
      continue;
    }
    const std::string message = source.up ? "source works" : "source fails: " + source.reason;
    states_.update(source.source, source.up ? "up" : "down", message, level(source.up));
  }
  if (cycle.batch.missing_gpus) {
    std::string names;
    for (const std::string& name : *cycle.batch.missing_gpus) names += (names.empty() ? "" : ", ") + name;
    const bool none = names.empty();
    states_.update("missing-gpus", names,
                   none ? "all GPUs that --gpu-devices names are there"
                        : "--gpu-devices names GPUs that are not there, the others are watched: " + names,
                   level(none));
  }
  for (const DeviceAccount& device : cycle.ledger.devices) {
    const std::string message = device.up ? "GPU " + std::to_string(device.description->index) + " answers"
                                          : "GPU " + std::to_string(device.description->index) + " does not answer";
    states_.update(device.description->uuid.text, device.up ? "up" : "down", message, level(device.up));
  }
  for (const DeviceSample& device : cycle.batch.devices) {
    for (uint64_t xid : device.xids) {
      log_warn("Xid error",
               {{"gpu", device.description->index}, {"uuid", device.description->uuid.text.str()}, {"xid", xid}});
    }
  }
}

void Pipeline::change(const BookingRules& rules, PipelineOptions options) {
  engine_.change_rules(rules);
  source_->change_interval(options.sample_interval);
  source_->change_readings(options.readings);
  options_ = std::move(options);
  shown_ = std::make_shared<const expose::ExposeOptions>(options_.expose);
}

void Pipeline::release_gpus() {
  source_->release();
  log_info("GPUs released; SIGUSR2 opens them again");
}

void Pipeline::resume_gpus() {
  source_->resume();
  rescan_wanted_ = true;
  log_info("GPUs opened again");
}

}  // namespace gpuledger::app
