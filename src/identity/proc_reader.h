// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "identity/user_names.h"

namespace gpuledger::identity {

// Field 22 of /proc/<pid>/stat. Counted after the last ')': the name may contain any character.
Result<uint64_t> parse_start_ticks(std::string_view stat);
// "btime" of /proc/stat, seconds since 1970.
Result<double> parse_boot_time(std::string_view stat);
Result<double> read_boot_time(const std::string& proc_root);
// For labels and logs: at most 64 bytes of valid UTF-8, no control characters, "unknown" if nothing is left.
std::string clean_name(std::string_view name);
// The job number in the title of a Slurm step's monitor process, "slurmstepd: [3385.0]".
std::optional<uint32_t> parse_slurmstepd_title(std::string_view cmdline);

// How much of the host a /proc shows. The driver lists the host's pids.
struct ProcView {
  bool host_pids = true;      // false: its pids differ from the driver's, so it is not used to look up pids
  bool all_processes = true;  // false: other users' are hidden (hidepid)
  bool own_pids = false;      // its pids are valid in this process's system calls
  std::string warning;        // the problem and the remedy in one line; empty: no problem
};

// Reads processes from /proc. Reads below root, so tests and the simulated node bring their own.
class ProcReader {
 public:
  // passwd: the host's; empty: found where it can be.
  explicit ProcReader(std::string root, const std::string& passwd = {})
      : root_(std::move(root)), users_(passwd.empty() ? UserNames::find_file(root_) : passwd) {}

  Status check() const;  // is this a /proc at all?
  // Called once at the start. A folder that is no procfs (a test's, the simulated node's) is taken as it is.
  ProcView read_view() const;
  Result<uint64_t> read_start_ticks(Pid pid) const;
  // Of the file with the start time; cheaper than reading it. Equal stamps: the same process. Different stamps: maybe
  // the same process, because the kernel may recreate these files at any time.
  struct Stamp {
    uint64_t inode = 0;
    int64_t changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  std::optional<Stamp> read_stamp(Pid pid) const;
  Result<std::string> read_name(Pid pid) const;
  // The real uid as a number. Empty: could not be read.
  std::string read_uid(Pid pid) const;
  // The uid's name in the host's passwd. Empty: not known.
  std::string user_name(const std::string& uid) { return users_.name_of(uid); }
  // kMalformed: the path is longer than the kernel prints (ENAMETOOLONG). A container that may make cgroups can do that
  // to its own processes.
  Result<std::string> read_cgroup(Pid pid) const;
  // Of this program. Empty: unreadable, or not in this /proc.
  std::string read_own_cgroup() const;
  // The number of a job that cgroups name by its SLUID. step_cgroup is CgroupHome::step_cgroup; cgroup_root is the
  // mount of the host's cgroups (/sys/fs/cgroup). Empty: not found. Reads a few files: cache the answer.
  std::optional<uint32_t> read_slurm_job(const std::string& cgroup_root, const std::string& step_cgroup) const;
  // Ticks since boot to seconds since 1970.
  std::optional<double> start_time_seconds(uint64_t start_ticks);

 private:
  std::string path(Pid pid, const char* file) const;

  std::string root_;
  UserNames users_;
  std::optional<double> boot_time_;
};

}  // namespace gpuledger::identity
