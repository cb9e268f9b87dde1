// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "sample/replay/trace.h"

namespace gpuledger::replay {

inline const std::string kDeviceLine =
    R"({"k":"device","t":0.0,"name":"NVIDIA H200","uuid":"GPU-0","memory_total":100,"power_limit_mw":700000,"driver":"1"})"
    "\n";

inline std::string energy_line(double t, uint64_t millijoules) {
  return "{\"k\":\"energy\",\"t\":" + std::to_string(t) + ",\"mj\":" + std::to_string(millijoules) +
         ",\"call_us\":3000,\"power_mw\":80000}\n";
}

inline std::string ticket_line(double ts, unsigned pid, unsigned sm) {
  return "{\"k\":\"util\",\"t\":" + std::to_string(ts + 0.05) + ",\"ts\":" + std::to_string(ts) +
         ",\"pid\":" + std::to_string(pid) + ",\"sm\":" + std::to_string(sm) + ",\"mem\":0,\"enc\":0,\"dec\":0}\n";
}

// An energy reading every 100 ms at 100 W, from 0 to `seconds`.
inline std::string steady_power(int seconds) {
  std::string text;
  for (int i = 0; i <= seconds * 10; ++i) text += energy_line(i / 10.0, static_cast<uint64_t>(10'000 * i));
  return text;
}

// A trace of text that must be right.
inline Trace trace_of(const std::string& text) {
  auto trace = parse_trace(text, "test");
  if (trace.ok()) return *std::move(trace);
  ADD_FAILURE() << trace.error().message;
  return {};
}

inline std::string recorded(const std::string& name) {
  return GPU_LEDGER_SOURCE_DIR "/tests/data/h200/" + name + ".jsonl.gz";
}

// Those with the trace of context switches.
inline std::string recorded_exact(const std::string& name) {
  return GPU_LEDGER_SOURCE_DIR "/tests/data/h200_exact/" + name + ".jsonl.gz";
}

// The names of all recordings that come with a truth.
inline std::vector<std::string> recordings() {
  std::vector<std::string> names;
  const std::string ending = ".truth.json";
  for (const auto& entry : std::filesystem::directory_iterator(GPU_LEDGER_SOURCE_DIR "/tests/data/h200")) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(ending)) names.push_back(file.substr(0, file.size() - ending.size()));
  }
  return names;
}

}  // namespace gpuledger::replay
