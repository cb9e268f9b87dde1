// SPDX-License-Identifier: Apache-2.0
#include "app/top/gpu_lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuledger::app::top {
namespace {

constexpr size_t kIndex = 3, kWatts = 7, kLimit = 5, kBusy = 4, kMemory = 11, kTemperature = 4, kEnergy = 7;
constexpr size_t kFixed = kIndex + kWatts + kLimit + kBusy + kMemory + kTemperature + kEnergy + 7;  // and blanks
constexpr size_t kShortestModel = 11, kLongestModel = 26;
constexpr size_t kShortestBar = 5, kLongestBar = 22;
constexpr double kNearLimit = 0.9;
constexpr double kHot = 85;

struct Widths {
  size_t model = kShortestModel;
  size_t bar = 0;      // 0: none
  bool limits = true;  // also the power limit and the temperature
};

// The widths of what is not a number. A narrow screen has no bars, then no limits.
Widths widths_for(size_t columns, bool bars) {
  Widths widths;
  const size_t rest = columns > kFixed ? columns - kFixed : 0;
  widths.limits = rest >= kShortestModel;
  widths.model = std::clamp(bars ? rest / 3 : rest, kShortestModel, kLongestModel);
  if (!bars || rest < widths.model + 2 * (kShortestBar + 1)) return widths;
  widths.bar = std::min((rest - widths.model) / 2 - 1, kLongestBar);
  return widths;
}

Style power_style(const Books::Gpu& gpu) {
  if (!gpu.watts || !gpu.limit_watts || *gpu.limit_watts <= 0) return Style::kPlain;
  return *gpu.watts >= kNearLimit * *gpu.limit_watts ? Style::kWarn : Style::kPlain;
}

// A number with its bar before it.
void add_meter(Line& line, const Widths& widths, std::optional<double> ratio, Style style, std::string number) {
  if (widths.bar > 0) line.push_back({" " + bar(ratio.value_or(0), widths.bar), ratio ? style : Style::kDim});
  line.push_back({" " + std::move(number)});
}

Line write_head(const Widths& widths) {
  const auto meter = [&](std::string_view title, size_t width) {
    return " " + right(title, width + (widths.bar > 0 ? widths.bar + 1 : 0));
  };
  std::string text = right("GPU", kIndex) + " " + left("MODEL", widths.model) + " " + right("WATTS", kWatts);
  if (widths.limits) text += " " + right("LIMIT", kLimit);
  text += meter("BUSY", kBusy) + meter("MEMORY", kMemory);
  if (widths.limits) text += " " + right("TEMP", kTemperature);
  return {{text + " " + right("ENERGY", kEnergy), Style::kBold}};
}

Line write_gpu(const Books::Gpu& gpu, const Widths& widths) {
  Line line = {{right(std::to_string(gpu.index), kIndex) + " " + left(gpu.model, widths.model)}};
  if (!gpu.up) {
    line.push_back({"  does not answer", Style::kBad});
    return line;
  }
  line.push_back({" " + right(gpu.watts ? watts_text(*gpu.watts) : "-", kWatts), power_style(gpu)});
  if (widths.limits)
    line.push_back({" " + right(gpu.limit_watts ? fmt::format("{:.0f}", *gpu.limit_watts) : "-", kLimit)});
  add_meter(line, widths, gpu.busy, Style::kGood, right(percent_text(gpu.busy), kBusy));
  std::optional<double> used;
  if (gpu.memory_used && gpu.memory_total && *gpu.memory_total > 0) used = *gpu.memory_used / *gpu.memory_total;
  add_meter(line, widths, used, Style::kMemory,
            right(memory_text(gpu.memory_used) + "/" + memory_text(gpu.memory_total), kMemory));
  if (widths.limits) {
    line.push_back({" " + right(gpu.celsius ? fmt::format("{:.0f}C", *gpu.celsius) : "-", kTemperature),
                    gpu.celsius && *gpu.celsius >= kHot ? Style::kBad : Style::kPlain});
  }
  line.push_back({" " + right(energy_text(gpu.joules), kEnergy)});
  return line;
}

}  // namespace

std::vector<Line> write_gpus(const Books& books, const View& view, size_t columns, size_t most, bool bars) {
  const Widths widths = widths_for(columns, bars);
  std::vector<Line> lines = {write_head(widths)};
  for (const Books::Gpu& gpu : books.gpus) {
    if (!view.gpu || gpu.index == *view.gpu) lines.push_back(write_gpu(gpu, widths));
  }
  const size_t count = lines.size() - 1;
  if (count > most) {
    const size_t shown = most > 1 ? most - 1 : most;
    lines.resize(1 + shown);
    if (most > 1) lines.push_back({{fmt::format("... {} more GPUs; tab chooses one", count - shown), Style::kDim}});
  }
  return lines;
}

}  // namespace gpuledger::app::top
