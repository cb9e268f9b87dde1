// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "app/commands/replay.h"
#include "sample/replay/trace.h"

// gpu-ledger replay with other constants of the model: replay_with FILE [--exact-time=off] [NAME=VALUE ...]. For
// ablation.py.
int main(int argc, char** argv) {
  using gpuledger::attribute::Constants;
  Constants constants;
  bool exact_time = true;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--exact-time=off") == 0) {
      exact_time = false;
      continue;
    }
    const char* const value = std::strchr(argv[i], '=');
    const std::string name(argv[i], value ? static_cast<size_t>(value - argv[i]) : std::strlen(argv[i]));
    bool known = false;
#define GPU_LEDGER_SET(constant, usual, unit, meaning, source) \
  if (value && name == #constant) known = true, constants.constant = std::atof(value + 1);
    GPU_LEDGER_MODEL_CONSTANTS(GPU_LEDGER_SET)
#undef GPU_LEDGER_SET
    if (!known) {
      std::fprintf(stderr, "replay_with: no constant %s\n", argv[i]);
      return 2;
    }
  }
  auto trace = gpuledger::replay::read_trace(argc > 1 ? argv[1] : "");
  if (!trace.ok()) {
    std::fprintf(stderr, "%s\n", trace.error().message.c_str());
    return 1;
  }
  if (!exact_time) trace->residency.clear();
  const auto ledger = gpuledger::app::run_replay(*trace, {}, {}, constants);
  if (!ledger.ok()) {
    std::fprintf(stderr, "%s\n", ledger.error().message.c_str());
    return 1;
  }
  std::fputs(gpuledger::app::write_replay(*ledger).c_str(), stdout);
  return 0;
}
