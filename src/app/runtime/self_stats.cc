// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/self_stats.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <sstream>

#include "base/file.h"
#include "identity/proc_reader.h"

namespace gpuledger::app {
namespace {

constexpr size_t kLargestStatus = 64 << 10;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t count_open_fds() {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc/self/fd"), &::closedir);
  if (!dir) return 0;
  uint64_t count = 0;
  while (const dirent* entry = ::readdir(dir.get())) count += entry->d_name[0] != '.';
  return count > 0 ? count - 1 : 0;  // the one of this listing
}

// Constant, so it is read once.
double start_time_seconds() {
  identity::ProcReader proc("/proc");
  const auto ticks = proc.read_start_ticks(static_cast<Pid>(::getpid()));
  return ticks.ok() ? proc.start_time_seconds(*ticks).value_or(0) : 0;
}

void read_status(SelfStats& stats) {
  const auto status = read_file("/proc/self/status", kLargestStatus);
  if (!status.ok()) return;
  std::istringstream lines(*status);
  std::string key;
  while (lines >> key) {
    uint64_t value = 0;
    if (key == "VmRSS:" && lines >> value) stats.resident_bytes = value * 1024;
    if (key == "VmSize:" && lines >> value) stats.virtual_bytes = value * 1024;
    if (key == "Threads:" && lines >> value) stats.threads = value;
    std::string rest;
    std::getline(lines, rest);
  }
}

}  // namespace

SelfStats read_self_stats() {
  static const double started = start_time_seconds();
  SelfStats stats;
  stats.cpu_seconds = cpu_seconds();
  stats.start_time_seconds = started;
  stats.open_fds = count_open_fds();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) stats.max_fds = limit.rlim_cur;
  read_status(stats);
  return stats;
}

}  // namespace gpuledger::app
