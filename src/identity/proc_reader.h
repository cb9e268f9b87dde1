#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace gpuledger::identity {

// Field 22 of /proc/<pid>/stat. Counted after the last ')': the name before it may hold anything.
Result<uint64_t> parse_start_ticks(std::string_view stat);
// "btime" of /proc/stat, seconds since 1970.
Result<double> parse_boot_time(std::string_view stat);
// Names go into labels and logs: at most 64 bytes, no control characters, "unknown" when nothing is left.
std::string clean_name(std::string_view name);

// What /proc knows of processes. Reads below root, so tests and the simulated node bring their own.
class ProcReader {
 public:
  explicit ProcReader(std::string root) : root_(std::move(root)) {}

  Status check() const;  // is this a /proc at all?
  Result<uint64_t> read_start_ticks(Pid pid) const;
  Result<std::string> read_name(Pid pid) const;
  Result<std::string> read_cgroup(Pid pid) const;
  // Ticks since boot to seconds since 1970.
  std::optional<double> start_time_seconds(uint64_t start_ticks);

 private:
  std::string path(Pid pid, const char* file) const;

  std::string root_;
  std::optional<double> boot_time_;
};

}  // namespace gpuledger::identity
