// SPDX-License-Identifier: Apache-2.0
#include "app/commands/top_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "base/quote.h"

namespace gpuledger::app {
namespace {

constexpr size_t kLongestText = 200;

bool starts_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// One column per character: lines with wide characters are slightly misaligned.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::string cut(std::string_view text, size_t columns) {
  size_t seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (starts_character(text[i]) && seen++ == columns) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

std::string padded(std::string_view text, size_t columns) {
  std::string out = cut(clean_text(text, kLongestText), columns);
  out.append(columns - width_of(out), ' ');
  return out;
}

std::string scaled(double value, double step, const std::array<const char*, 5>& units) {
  size_t i = 0;
  while (value >= step && i + 1 < units.size()) {
    value /= step;
    ++i;
  }
  return fmt::format("{:.{}f}{}", value, i == 0 || value >= 100 ? 0 : 1, units[i]);
}

std::string memory_text(const std::optional<Bytes>& memory) {
  return memory ? scaled(static_cast<double>(memory->count), 1024, {"B", "K", "M", "G", "T"}) : "-";
}

std::string energy_text(Energy energy) {
  return scaled(energy.joules(), 1000, {"J", "kJ", "MJ", "GJ", "TJ"});
}

std::string percent_text(const std::optional<Ratio>& ratio) {
  return ratio ? fmt::format("{:.0f}%", 100 * ratio->value) : "-";
}

std::string time_text(Nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

// One line of the table: a process and its energy since the previous cycle; empty without one.
struct Row {
  const ProcessAccount* process;
  std::optional<double> watts;
};

// The columns for watts and their error. The relative error is that of all joules booked so far; if it is 100 % or
// more, the power is unknown.
std::string power_text(const Row& row) {
  constexpr double kLeastShown = 0.05;
  const double all = row.process->booked.total().joules();
  const double part = all > 0 ? row.process->standard_error_joules / all : 0;
  const bool drawing = row.watts && row.process->active;
  const double error = drawing ? part * *row.watts : 0;
  if (error >= kLeastShown && part >= 1) return fmt::format("{:>16}", "not known yet");
  return fmt::format("{:>8} {:>7}", drawing ? fmt::format("{:.1f}", *row.watts) : "-",
                     error >= kLeastShown ? fmt::format("±{:.1f}", error) : "");
}

std::string idle_text(const ProcessAccount& process) {
  if (!process.active) return "ended";
  return process.idle.evaluated && process.idle.idle ? time_text(process.idle.idle_for) : "";
}

std::string first_line(const Cycle& cycle, const TopView& view) {
  double watts = 0;
  for (const DeviceSample& device : cycle.batch.devices) watts += device.power ? device.power->watts() : 0;
  const auto active = std::count_if(cycle.ledger.processes.begin(), cycle.ledger.processes.end(),
                                    [](const ProcessAccount& process) { return process.active; });
  return fmt::format("gpu-ledger{}{}: {} GPUs, {:.0f} W, {} processes{}{}", view.node.empty() ? "" : " ",
                     clean_text(view.node, kLongestText), cycle.ledger.devices.size(), watts, active,
                     cycle.simulated ? ", SIMULATED" : "",
                     view.keys ? "   (q quits; order: w watts, m memory, e energy, i idle)" : "");
}

void add_gpus(const Cycle& cycle, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("{:>4} {:<26} {:>8} {:>8} {:>5} {:>15} {:>6} {:>9}", "GPU", "MODEL", "WATTS", "LIMIT",
                              "BUSY", "MEMORY", "TEMP", "ENERGY"));
  for (const DeviceAccount& account : cycle.ledger.devices) {
    const DeviceDescription& description = *account.description;
    const auto found =
        std::find_if(cycle.batch.devices.begin(), cycle.batch.devices.end(),
                     [&](const DeviceSample& each) { return each.description->uuid == description.uuid; });
    const std::string start = fmt::format("{:>4} {}", description.index, padded(description.model, 26));
    if (found == cycle.batch.devices.end() || !found->up) {
      lines.push_back(start + "  does not answer");
      continue;
    }
    lines.push_back(fmt::format("{} {:>8} {:>8} {:>5} {:>15} {:>6} {:>9}", start,
                                found->power ? fmt::format("{:.1f}", found->power->watts()) : "-",
                                description.power_limit ? fmt::format("{:.0f}", description.power_limit->watts()) : "-",
                                percent_text(found->gpu_utilization),
                                memory_text(found->memory_used) + "/" + memory_text(found->memory_total),
                                found->temperature_celsius ? fmt::format("{:.0f}C", *found->temperature_celsius) : "-",
                                energy_text(account.measured)));
  }
}

auto key_of(const ProcessAccount& process) {
  return std::tuple(process.gpu.text, process.mig ? process.mig->uuid : "", process.identity.key.pid,
                    process.identity.key.start_ticks);
}

std::vector<Row> rows_of(const Cycle& cycle, const Cycle* before) {
  std::map<decltype(key_of(ProcessAccount())), Energy> booked;
  double seconds = 0;
  if (before != nullptr) {
    for (const ProcessAccount& process : before->ledger.processes) booked[key_of(process)] = process.booked.total();
    seconds = std::chrono::duration<double>(cycle.batch.at.steady - before->batch.at.steady).count();
  }
  std::vector<Row> rows;
  for (const ProcessAccount& process : cycle.ledger.processes) {
    Row row{&process, std::nullopt};
    // A new process starts at 0.
    if (seconds > 0) row.watts = (process.booked.total() - booked[key_of(process)]).joules() / seconds;
    rows.push_back(row);
  }
  return rows;
}

double weight_of(const Row& row, TopOrder order) {
  const ProcessAccount& process = *row.process;
  if (!process.active) return -1;
  switch (order) {
    case TopOrder::kWatts: return row.watts.value_or(0);
    case TopOrder::kMemory: return process.memory ? static_cast<double>(process.memory->count) : 0;
    case TopOrder::kEnergy: return process.booked.total().joules();
    case TopOrder::kIdle: return process.idle.idle ? static_cast<double>(process.idle.idle_for.count()) : 0;
  }
  return 0;
}

void add_processes(const Cycle& cycle, const Cycle* before, const TopView& view, std::vector<std::string>& lines) {
  constexpr size_t kFixed = 67;  // the columns before the owner
  const size_t rest = view.columns > kFixed ? view.columns - kFixed : 0;
  const size_t owner = std::clamp<size_t>(rest * 6 / 10, 20, 60);
  lines.push_back(fmt::format("{:>4} {:>8} {:>8} {:>7} {:>6} {:>8} {:>9} {:>8}  {}{}", "GPU", "PID", "WATTS", "+/-",
                              "SHARE", "MEMORY", "ENERGY", "IDLE", padded("OWNER", owner + 1), "PROCESS"));
  std::vector<Row> rows = rows_of(cycle, before);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Row& a, const Row& b) { return weight_of(a, view.order) > weight_of(b, view.order); });
  for (const Row& row : rows) {
    const ProcessAccount& process = *row.process;
    lines.push_back(
        fmt::format("{:>4} {:>8} {} {:>6} {:>8} {:>9} {:>8}  {} {}", process.gpu_index, process.identity.key.pid,
                    power_text(row), percent_text(process.active ? process.sm : std::nullopt),
                    memory_text(process.active ? process.memory : std::nullopt), energy_text(process.booked.total()),
                    idle_text(process), padded(owner_text(process.identity.owner), owner),
                    clean_text(process.identity.name, kLongestText)));
  }
}

}  // namespace

std::vector<std::string> write_top(const Cycle& cycle, const Cycle* before, const TopView& view) {
  std::vector<std::string> lines = {first_line(cycle, view)};
  for (const SourceHealth& source : cycle.sources) {
    if (source.missed()) lines.push_back("! " + source.source + ": " + clean_text(source.reason, kLongestText));
  }
  lines.emplace_back();
  add_gpus(cycle, lines);
  lines.emplace_back();
  add_processes(cycle, before, view, lines);
  if (view.rows > 0 && lines.size() > view.rows) {
    const size_t hidden = lines.size() - view.rows + 1;
    lines.resize(view.rows);
    lines.back() = fmt::format("... and {} more lines; a taller window shows them", hidden);
  }
  for (std::string& line : lines) {
    line = cut(line, view.columns);
    while (line.ends_with(' ')) line.pop_back();
  }
  return lines;
}

}  // namespace gpuledger::app
