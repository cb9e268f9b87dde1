// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "app/commands/commands.h"
#include "app/config/config.h"
#include "app/revision.h"
#include "base/descriptors.h"
#include "base/file.h"
#include "base/log.h"
#include "expose/expose.h"
#include "task/leavable_thread.h"

namespace {

constexpr int kWorkFailed = 1;
constexpr int kWrongUse = 2;

int fail(const std::string& message, int code) {
  std::fprintf(stderr, "gpu-ledger: %s\n", message.c_str());
  return code;
}

void warn_of_unknown_variables(const gpuledger::app::Config& config) {
  for (const std::string& variable : config.unknown_environment) {
    gpuledger::log_warn("environment variable is no setting of gpu-ledger", {{"variable", variable}});
  }
}

int run(int argc, char** argv) {
  using namespace gpuledger;
  raise_descriptor_limit();
  app::ConfigSources sources = app::read_sources(argc, argv, app::commands());
  sources.revision = app::revision();
  auto outcome = app::read_config(sources);
  if (!outcome.ok()) return fail(outcome.error().message, kWrongUse);
  if (const auto* answer = std::get_if<app::PrintAndExit>(&*outcome)) {
    const Status written = write_to_stdout(answer->text);
    return written.ok() ? 0 : fail(written.error().message, kWorkFailed);
  }
  const auto& config = std::get<app::Config>(*outcome);
  if (const Status prefix = expose::check_process_prefix(config.metric_prefix); !prefix.ok()) {
    return fail("--metric-prefix: " + prefix.error().message, kWrongUse);
  }
  if (const Status log = configure_log(config.log_level, config.log_format); !log.ok()) {
    return fail(log.error().message, kWrongUse);
  }
  warn_of_unknown_variables(config);
  const Status done = config.command->run(config, sources);
  return done.ok() ? 0 : fail(done.error().message, kWorkFailed);
}

// A thread that hung in the driver may be on its way out of it just now.
int end_beside_threads(int code) {
  if (!gpuledger::task::any_left_behind()) return code;
  std::fflush(stdout);
  std::fflush(stderr);
  std::_Exit(code);
}

// glibc's defaults are for programs that allocate all the time on many threads. Here threads mostly sleep, and a text
// of some megabytes is made for a scrape and freed a second later. With its defaults glibc would keep that memory.
void keep_memory_low() {
  constexpr int kHeaps = 1;  // a second one holds free memory that the first could use
  // Larger blocks are given back when they are freed. Setting it also keeps glibc from raising it.
  constexpr int kOwnPages = 128 * 1024;
  constexpr int kMostFreeAtTheEnd = 128 * 1024;
  ::mallopt(M_ARENA_MAX, kHeaps);
  ::mallopt(M_MMAP_THRESHOLD, kOwnPages);
  ::mallopt(M_TRIM_THRESHOLD, kMostFreeAtTheEnd);
}

}  // namespace

int main(int argc, char** argv) {
  gpuledger::end_when_out_of_memory(kWorkFailed);
  keep_memory_low();
  // Last resort: libraries may throw, we never do.
  try {
    return end_beside_threads(run(argc, argv));
  } catch (const std::exception& error) { return end_beside_threads(fail(error.what(), kWorkFailed)); }
}
