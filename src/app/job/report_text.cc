// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "app/job/report.h"
#include "app/top/feed.h"
#include "app/top/text.h"
#include "base/quote.h"
#include "base/units.h"
#include "base/version.h"
#include "expose/json_text.h"

namespace gpuledger::app {
namespace {

constexpr size_t kNameColumns = 16;
constexpr size_t kLongestName = 64;
constexpr int kSchemaVersion = 1;  // of the JSON; raised as docs/snapshot.md says of the snapshot's

std::string clean(const std::string& name) {
  return clean_text(name, kLongestName);
}

void add_line(std::string& out, std::string_view name, const std::string& value) {
  out += fmt::format("{:<{}} {}\n", name, kNameColumns, value);
}

std::string energy_with_error(const JobReport::Use& use) {
  std::string text = top::energy_text(use.total().joules());
  if (use.error_joules > 0) text += " +- " + top::energy_text(use.error_joules);
  return text;
}

std::string title_of(const JobReport& report) {
  std::string text = "Slurm job " + clean(report.job);
  if (!report.node.empty()) text += " on " + clean(report.node);
  return text + (report.simulated ? " (simulated)" : "");
}

std::string user_of(const JobReport& report) {
  const std::string uid = clean(report.uid);
  if (report.user_name.empty()) return uid.empty() ? "" : "uid " + uid;
  return clean(report.user_name) + (uid.empty() ? "" : " (uid " + uid + ")");
}

std::string time_or_dash(const std::optional<double>& seconds) {
  return seconds ? top::time_text(*seconds) : "-";
}

void add_steps(std::string& out, const JobReport& report) {
  out += fmt::format("\n{:<{}} {:>4} {:>10} {:>10} {:>10} {:>12}\n", "Step", kNameColumns, "GPU", "Energy", "+-",
                     "GPU time", "Peak memory");
  for (const JobReport::Step& step : report.steps) {
    const std::string error = step.error_joules > 0 ? top::energy_text(step.error_joules) : "-";
    out += fmt::format("{:<{}} {:>4} {:>10} {:>10} {:>10} {:>12}\n", step.step.empty() ? "-" : clean(step.step),
                       kNameColumns, step.gpu, top::energy_text(step.total().joules()), error,
                       time_or_dash(step.gpu_seconds), top::memory_text(step.memory_peak));
  }
}

template <typename T>
void add_field(expose::JsonText& json, std::string_view name, const std::optional<T>& value) {
  if (value) json.field(name, *value);
}

void add_use(expose::JsonText& json, const JobReport::Use& use) {
  json.name("energy_joules");
  json.open('{');
  json.field("alone", use.alone);
  json.field("shared", use.shared);
  json.field("total", use.total());
  json.close('}');
  if (use.shared > Energy()) json.field("energy_standard_error_joules", use.error_joules);
  add_field(json, "gpu_seconds", use.gpu_seconds);
  if (use.memory_peak) json.field("memory_peak_bytes", static_cast<uint64_t>(*use.memory_peak));
}

}  // namespace

std::string write_job_text(const JobReport& report, double price_per_kwh) {
  std::string out = title_of(report) + "\n";
  if (!report.account.empty()) add_line(out, "Account", clean(report.account));
  if (!report.partition.empty()) add_line(out, "Partition", clean(report.partition));
  if (const std::string user = user_of(report); !user.empty()) add_line(out, "User", user);
  add_line(out, "State",
           report.running ? "runs" : "no process on a GPU since " + top::clock_text(report.ended.value_or(report.at)));
  if (report.steps_closed) {
    add_line(out, "INCOMPLETE",
             "the exporter has closed or left out accounts of steps; see --max-ended-owners, --max-series");
  }
  const JobReport::Use& use = report.whole;
  add_line(out, "Energy", fmt::format("{} ({:.4g} kWh)", energy_with_error(use), use.total().joules() / kJoulesPerKwh));
  add_line(out, "  measured", top::energy_text(use.alone.joules()) + " alone on a GPU");
  add_line(out, "  estimated", top::energy_text(use.shared.joules()) + " beside other processes");
  const char* const plural = report.gpus_used == 1 ? "GPU" : "GPUs";
  add_line(out, "GPU time", fmt::format("{} on {} {}", time_or_dash(use.gpu_seconds), report.gpus_used, plural));
  if (report.held_seconds && report.gpus_given) {
    add_line(out, "Held",
             fmt::format("{} with {:.0f} of the node's GPUs{}", top::time_text(*report.held_seconds),
                         *report.gpus_given, report.running ? "" : ", until its last process left them"));
  }
  if (const auto idle = report.idle_ratio()) add_line(out, "Idle share", fmt::format("{:.1f} %", 100 * *idle));
  if (const auto watts = report.mean_watts()) add_line(out, "Mean power", top::watts_text(*watts) + " W");
  add_line(out, "Peak memory", top::memory_text(use.memory_peak) + " by a step on one GPU");
  if (const auto cost = report.kwh_cost(price_per_kwh)) {
    add_line(out, "Energy cost", fmt::format("{:.4g} at {:g} per kWh", *cost, price_per_kwh));
  }
  add_steps(out, report);
  return out;
}

std::string write_job_json(const JobReport& report, double price_per_kwh) {
  expose::JsonText json(1024 + 256 * report.steps.size());
  json.open('{');
  json.field("schema_version", kSchemaVersion);
  json.field("slurm_job_id", std::string_view(report.job));
  json.field_if_any("node", report.node);
  json.field_if_any("account", report.account);
  json.field_if_any("partition", report.partition);
  json.field_if_any("uid", report.uid);
  json.field_if_any("user_name", report.user_name);
  json.field("at", report.at);
  json.field("running", report.running);
  if (report.steps_closed) json.field("job_steps_closed", true);
  json.field("simulated", report.simulated);
  json.field("gpus_used", report.gpus_used);
  if (report.gpus_given) json.field("job_gpus", static_cast<uint64_t>(*report.gpus_given));
  add_use(json, report.whole);
  add_field(json, "held_seconds", report.held_seconds);
  add_field(json, "idle_ratio", report.idle_ratio());
  add_field(json, "mean_watts", report.mean_watts());
  add_field(json, "energy_cost", report.kwh_cost(price_per_kwh));
  json.name("steps");
  json.open('[');
  for (const JobReport::Step& step : report.steps) {
    json.open('{');
    json.field_if_any("step", step.step);
    json.field("gpu", step.gpu);
    add_use(json, step);
    json.close('}');
  }
  json.close(']');
  json.field("version", std::string_view(version()));
  json.close('}');
  return json.take() + "\n";
}

std::string write_job_line(const JobReport& report, double price_per_kwh) {
  const JobReport::Use& use = report.whole;
  std::string out = fmt::format("gpu_energy_joules={:.3f}", use.total().joules());
  if (use.shared > Energy()) out += fmt::format(" gpu_energy_error_joules={:.3f}", use.error_joules);
  if (use.gpu_seconds) out += fmt::format(" gpu_seconds={:.3f}", *use.gpu_seconds);
  if (use.memory_peak) out += fmt::format(" gpu_memory_peak_bytes={:.0f}", *use.memory_peak);
  if (const auto idle = report.idle_ratio()) out += fmt::format(" idle_ratio={:.3f}", *idle);
  if (const auto cost = report.kwh_cost(price_per_kwh)) out += fmt::format(" gpu_energy_cost={:.6g}", *cost);
  if (report.steps_closed) out += " steps_closed=1";
  return out + "\n";
}

}  // namespace gpuledger::app
