// SPDX-License-Identifier: Apache-2.0
#include "app/top/row_lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuledger::app::top {
namespace {

struct Column {
  SortBy by;
  std::string_view title;
  size_t width;
};
constexpr Column kNumbers[] = {
    {SortBy::kGpu, "GPU", 3},     {SortBy::kPid, "PID", 7},       {SortBy::kWatts, "WATTS", 7},
    {SortBy::kShare, "SHARE", 5}, {SortBy::kMemory, "MEMORY", 6}, {SortBy::kEnergy, "ENERGY", 7},
    {SortBy::kIdle, "IDLE", 6},
};
constexpr size_t kErrorWidth = 6;
constexpr size_t kEnergyErrorWidth = 7;
constexpr size_t kNamesBesideEnergyErrors = 40;
constexpr size_t kLeastForNames = 16;
constexpr size_t kLeastForBothNames = 20;
constexpr size_t kLeastForProcess = 7;
constexpr size_t kLongestOwner = 60;
// Columns that a narrow screen loses first, except the one it is sorted by; the column +/- is lost before them.
constexpr SortBy kGoFirst[] = {SortBy::kShare, SortBy::kIdle,   SortBy::kMemory,
                               SortBy::kPid,   SortBy::kEnergy, SortBy::kGpu};

const Column& column_of(SortBy by) {
  return *std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const Column& each) { return each.by == by; });
}

// With an error of 100 % or more the power says nothing.
struct Power {
  std::string watts = "-";
  std::string error;
  bool known = true;
};
Power power_of(const Row& row) {
  constexpr double kLeastShown = 0.05;
  Power power;
  if (!row.watts) return power;
  const double error = row.watts_error;
  power.known = error < kLeastShown || error < *row.watts;
  power.watts = power.known ? watts_text(*row.watts) : "?";
  if (power.known && error >= kLeastShown) power.error = fmt::format("±{:.{}f}", error, error >= 100 ? 0 : 1);
  return power;
}

// Empty: none, or less than the digits that the energy has.
std::string energy_error(const Row& row) {
  constexpr double kLeastJoules = 0.5, kLeastPart = 0.001;
  const double error = row.joules_error;
  return error >= kLeastJoules && error >= kLeastPart * row.joules ? "±" + energy_text(error) : "";
}

std::string gpu_cell(const Row& row) {
  return row.gpu ? std::to_string(*row.gpu) : fmt::format("{}x", row.gpus);
}

std::string idle_cell(const Row& row) {
  if (!row.active) return "ended";
  return row.idle_seconds ? time_text(*row.idle_seconds) : "";
}

std::string cell_of(const Row& row, SortBy by) {
  switch (by) {
    case SortBy::kGpu: return gpu_cell(row);
    case SortBy::kPid: return row.pid ? std::to_string(*row.pid) : "";
    case SortBy::kWatts: return power_of(row).watts;
    case SortBy::kShare: return percent_text(row.share);
    case SortBy::kMemory: return memory_text(row.memory);
    case SortBy::kEnergy: return energy_text(row.joules);
    case SortBy::kIdle: return idle_cell(row);
    case SortBy::kOwner: return row.owner;
    case SortBy::kProcess: return row.process;
  }
  return "";
}

}  // namespace

RowLayout::RowLayout(size_t columns, const View& view) : view_(view) {
  size_t taken = 1 + kErrorWidth + 1;
  for (const Column& column : kNumbers) {
    if (column.by == SortBy::kPid && view.by_owner && view.sort != SortBy::kPid) continue;  // most have several
    numbers_.push_back(column.by);
    taken += column.width + 1;
  }
  const auto narrow = [&] { return taken + kLeastForNames > columns; };
  if (narrow()) {
    errors_ = false;
    taken -= kErrorWidth + 1;
  }
  for (const SortBy by : kGoFirst) {
    if (!narrow()) break;
    if (by == view.sort || std::erase(numbers_, by) == 0) continue;
    taken -= column_of(by).width + 1;
  }
  energy_errors_ = errors_ && taken + kEnergyErrorWidth + 1 + kNamesBesideEnergyErrors <= columns;
  if (energy_errors_) taken += kEnergyErrorWidth + 1;
  const size_t rest = columns > taken ? columns - taken : 0;
  if (rest < (view.sort == SortBy::kProcess ? kLeastForNames : kLeastForBothNames)) {
    owner_ = rest;
    return;
  }
  owner_ = std::min({rest * 2 / 3, rest - kLeastForProcess - 1, kLongestOwner});
  process_ = rest - owner_ - 1;
}

Line RowLayout::write_head() const {
  Line line;
  const auto add = [&](std::string text, SortBy by) {
    line.push_back({std::move(text), by == view_.sort ? Style::kSorted : Style::kBold});
  };
  for (const SortBy by : numbers_) {
    const Column& column = column_of(by);
    if (!line.empty()) line.push_back({" "});
    add(right(column.title, column.width), by);
    if (by == SortBy::kWatts && errors_) line.push_back({" " + right("+/-", kErrorWidth), Style::kBold});
    if (by == SortBy::kEnergy && energy_errors_) line.push_back({" " + right("+/-", kEnergyErrorWidth), Style::kBold});
  }
  line.push_back({"  "});
  add(left("OWNER", owner_), SortBy::kOwner);
  if (process_ == 0) return line;
  line.push_back({" "});
  add(left("PROCESS", process_), SortBy::kProcess);
  return line;
}

Line RowLayout::write_row(const Row& row) const {
  const Style style = !row.active ? Style::kDim : row.idle_seconds ? Style::kWarn : Style::kPlain;
  const Power power = power_of(row);
  Line line;
  const auto add = [&](std::string text, Style own = Style::kPlain) {
    line.push_back({std::move(text), own == Style::kPlain || !row.active ? style : own});
  };
  for (const SortBy by : numbers_) {
    const std::string blank = line.empty() ? "" : " ";
    const size_t width = column_of(by).width;
    if (by == SortBy::kEnergy) {
      const std::string error = energy_error(row);
      add(blank + right((energy_errors_ || error.empty() ? "" : "~") + cell_of(row, by), width));
      if (energy_errors_) add(" " + right(error, kEnergyErrorWidth));
    } else if (by != SortBy::kWatts || !errors_) {
      add(blank + right(cell_of(row, by), width));
    } else if (!power.known) {
      add(blank + right("uncertain", width + 1 + kErrorWidth));
    } else {
      add(blank + right(power.watts, width), row.idle_seconds ? Style::kPlain : Style::kGood);
      add(" " + right(power.error, kErrorWidth));
    }
  }
  add("  " + both_ends(row.owner, owner_));
  if (process_ > 0) add(" " + left(row.process, process_), Style::kBold);
  return line;
}

}  // namespace gpuledger::app::top
