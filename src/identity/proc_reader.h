// SPDX-License-Identifier: Apache-2.0
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
// Names go into labels and logs: at most 64 bytes of valid UTF-8, no control characters, "unknown" when nothing is
// left.
std::string clean_name(std::string_view name);
// The job's number in the title of the process that minds a Slurm step, "slurmstepd: [3385.0]".
std::optional<uint32_t> parse_slurmstepd_title(std::string_view cmdline);

// How much of the host a /proc shows. The driver lists the host's pids.
struct ProcView {
  bool host_pids = true;      // false: its pids are others than the driver's, so nobody may be looked up by pid
  bool all_processes = true;  // false: those of other users are hidden (hidepid)
  bool own_pids = false;      // its pids mean the same to this process, which may ask the kernel by them
  std::string warning;        // what that means and what to do, one line; empty: nothing is missing
};

// What /proc knows of processes. Reads below root, so tests and the simulated node bring their own.
class ProcReader {
 public:
  explicit ProcReader(std::string root) : root_(std::move(root)) {}

  Status check() const;  // is this a /proc at all?
  // To be asked once at the start. A folder that is no procfs (a test's, the simulated node's) is taken as it is.
  ProcView read_view() const;
  Result<uint64_t> read_start_ticks(Pid pid) const;
  // Of the file that has the start: the same as before, the same process, for less than reading it. Another: it may be
  // the same all the same, because the kernel makes these files anew when it likes.
  struct Stamp {
    uint64_t inode = 0;
    int64_t changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  std::optional<Stamp> read_stamp(Pid pid) const;
  Result<std::string> read_name(Pid pid) const;
  // The real uid as a number: what it is called is for the host's passwd to say, and a container has another. Empty:
  // not to be read.
  std::string read_uid(Pid pid) const;
  // kMalformed: the path is longer than the kernel prints (ENAMETOOLONG). A container that may make cgroups can do that
  // to its own processes.
  Result<std::string> read_cgroup(Pid pid) const;
  // Of this program. Empty: not to be read, or this /proc does not show us.
  std::string read_own_cgroup() const;
  // The number of a job that cgroups name by its SLUID; step_cgroup is CgroupHome::slurm_cgroup, cgroup_root where the
  // host's cgroups are mounted (/sys/fs/cgroup). Empty: not to be found. Reads a few files: keep the answer.
  std::optional<uint32_t> read_slurm_job(const std::string& cgroup_root, const std::string& step_cgroup) const;
  // Ticks since boot to seconds since 1970.
  std::optional<double> start_time_seconds(uint64_t start_ticks);

 private:
  std::string path(Pid pid, const char* file) const;

  std::string root_;
  std::optional<double> boot_time_;
};

}  // namespace gpuledger::identity
