// SPDX-License-Identifier: Apache-2.0
#include "identity/proc_reader.h"

#include <sys/stat.h>

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/file.h"
#include "base/quote.h"
#include "base/text.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLargestProcFile = 64 << 10;
constexpr size_t kLargestStat = 4 << 20;        // /proc/stat grows with the number of interrupts
constexpr size_t kLargestCgroupFile = 1 << 20;  // parse_cgroup reads only its beginning
constexpr size_t kLongestProcessName = 64;
// Numbered as in proc(5). The name is field 2.
constexpr int kFlagsField = 9;
constexpr int kStartField = 22;

Result<uint64_t> parse_stat_field(std::string_view stat, int number) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return Error{Code::kMalformed, "no ')' in stat"};
  std::string_view rest = stat.substr(name_end + 1);
  for (int field = 3; field <= number; ++field) {
    const size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) {
      return Error{Code::kMalformed, "stat ends before field " + std::to_string(number)};
    }
    rest.remove_prefix(begin);
    if (field == number) break;
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  uint64_t value = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), value).ec != std::errc()) {
    return Error{Code::kMalformed, "field " + std::to_string(number) + " of stat is no number"};
  }
  return value;
}

bool is_kernel_thread(std::string_view stat) {
  constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD
  return (parse_stat_field(stat, kFlagsField).value_or(0) & kKernelThread) != 0;
}

bool is_procfs(const std::string& root) {
  struct statfs filesystem {};
  return ::statfs(root.c_str(), &filesystem) == 0 && filesystem.f_type == PROC_SUPER_MAGIC;
}

// This process is in the host's pid namespace and visible in this /proc, so this /proc shows host pids.
bool self_is_on_the_host(const std::string& root) {
  std::array<char, 64> target{};
  const ssize_t length = ::readlink((root + "/self/ns/pid").c_str(), target.data(), target.size());
  constexpr std::string_view kInitialNamespace = "pid:[4026531836]";  // the same on every kernel (PROC_PID_INIT_INO)
  return length > 0 && std::string_view(target.data(), static_cast<size_t>(length)) == kInitialNamespace;
}

// "NSpid", "Uid": the rest of the line.
std::string status_line(const std::string& path, std::string_view name) {
  const auto status = read_file(path, kLargestProcFile);
  const std::string key = "\n" + std::string(name) + ":\t";
  const size_t at = status.ok() ? status->find(key) : std::string::npos;
  if (at == std::string::npos) return {};
  const std::string_view rest = std::string_view(*status).substr(at + key.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

// This /proc shows this process with pids in more than one namespace: its namespace contains ours.
bool shows_an_outer_namespace(const std::string& root) {
  return status_line(root + "/self/status", "NSpid").find('\t') != std::string::npos;
}

}  // namespace

Result<uint64_t> parse_start_ticks(std::string_view stat) {
  return parse_stat_field(stat, kStartField);
}

Result<double> parse_boot_time(std::string_view stat) {
  constexpr std::string_view kKey = "btime ";
  size_t at = stat.starts_with(kKey) ? 0 : stat.find("\nbtime ");
  if (at == std::string_view::npos) return Error{Code::kMalformed, "no btime in stat"};
  if (at != 0) ++at;
  const std::string_view rest = stat.substr(at + kKey.size());
  uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), seconds);
  if (error != std::errc()) return Error{Code::kMalformed, "btime in stat is no number"};
  return static_cast<double>(seconds);
}

Result<double> read_boot_time(const std::string& proc_root) {
  GL_TRY(stat, read_file(proc_root + "/stat", kLargestStat));
  return parse_boot_time(stat);
}

std::string clean_name(std::string_view name) {
  std::string clean = clean_text(name, kLongestProcessName);
  return clean.empty() ? "unknown" : clean;
}

std::optional<uint32_t> parse_slurmstepd_title(std::string_view cmdline) {
  constexpr std::string_view kTitle = "slurmstepd: [";
  if (!cmdline.starts_with(kTitle)) return std::nullopt;
  cmdline.remove_prefix(kTitle.size());
  uint32_t job = 0;
  const char* const end = cmdline.data() + cmdline.size();
  const auto [stop, error] = std::from_chars(cmdline.data(), end, job);
  if (error != std::errc() || stop == end || *stop != '.') return std::nullopt;
  return job;
}

std::string ProcReader::path(Pid pid, const char* file) const {
  return root_ + "/" + std::to_string(pid) + "/" + file;
}

Status ProcReader::check() const {
  const auto stat = read_file(root_ + "/stat", kLargestStat);
  if (!stat.ok()) {
    return Error{stat.error().code, "--proc-root: " + stat.error().message + "; mount the host's /proc there"};
  }
  if (const auto boot = parse_boot_time(*stat); !boot.ok()) {
    return Error{Code::kMalformed, "--proc-root: " + root_ + " is not a /proc (" + boot.error().message + ")"};
  }
  return ok_status();
}

ProcView ProcReader::read_view() const {
  ProcView view;
  if (!is_procfs(root_)) return view;
  // Pid 1 is another process and always runs: only hidepid can hide its files.
  view.all_processes = read_file(path(1, "stat"), kLargestProcFile).ok();
  // Kernel threads have pids on the host only, and the first is always 2.
  const auto second = read_file(path(2, "stat"), kLargestProcFile);
  view.own_pids = self_is_on_the_host(root_);
  view.host_pids = (second.ok() && is_kernel_thread(*second)) || view.own_pids ||
                   (!view.all_processes && shows_an_outer_namespace(root_));
  if (!view.host_pids) {
    view.warning = "--proc-root: " + root_ +
                   " shows another pid namespace than the host's, while the driver lists the host's pids: no process "
                   "can be named; set hostPID: true, or mount the host's /proc and give its path";
  } else if (!view.all_processes) {
    view.warning = "--proc-root: " + root_ +
                   " hides other users' processes (hidepid): they stay without name and owner; run with the "
                   "capability SYS_PTRACE, or mount it without hidepid";
  }
  return view;
}

Result<uint64_t> ProcReader::read_start_ticks(Pid pid) const {
  GL_TRY(stat, read_file(path(pid, "stat"), kLargestProcFile));
  return parse_start_ticks(stat);
}

std::optional<ProcReader::Stamp> ProcReader::read_stamp(Pid pid) const {
  struct stat file {};
  if (::stat(path(pid, "stat").c_str(), &file) != 0) return std::nullopt;
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return Stamp{file.st_ino, file.st_ctim.tv_sec * kNanoseconds + file.st_ctim.tv_nsec};
}

Result<std::string> ProcReader::read_name(Pid pid) const {
  GL_TRY(comm, read_file(path(pid, "comm"), kLargestProcFile));
  if (comm.ends_with('\n')) comm.pop_back();
  return clean_name(comm);
}

std::string ProcReader::read_uid(Pid pid) const {
  const std::string uids = status_line(path(pid, "status"), "Uid");
  const std::string real = uids.substr(0, uids.find('\t'));
  return !real.empty() && real.find_first_not_of("0123456789") == std::string::npos ? real : std::string();
}

Result<std::string> ProcReader::read_cgroup(Pid pid) const {
  return read_file(path(pid, "cgroup"), kLargestCgroupFile);
}

std::string ProcReader::read_own_cgroup() const {
  return read_file(root_ + "/self/cgroup", kLargestCgroupFile).value_or("");
}

std::optional<uint32_t> ProcReader::read_slurm_job(const std::string& cgroup_root,
                                                   const std::string& step_cgroup) const {
  const auto pids = read_file(cgroup_root + step_cgroup + "/slurm/cgroup.procs", kLargestProcFile);
  if (!pids.ok()) return std::nullopt;
  std::string_view rest = *pids;
  constexpr int kMostTries = 16;  // slurmstepd is alone there except briefly at the start
  for (int i = 0; i < kMostTries && !rest.empty(); ++i) {
    const std::string_view line = take_until(rest, '\n');
    Pid pid = 0;
    std::from_chars(line.data(), line.data() + line.size(), pid);
    if (pid == 0) continue;  // not in this program's pid namespace
    const auto cmdline = read_file(path(pid, "cmdline"), kLargestProcFile);
    const auto job = cmdline.ok() ? parse_slurmstepd_title(*cmdline) : std::nullopt;
    if (job) return job;
  }
  return std::nullopt;
}

std::optional<double> ProcReader::start_time_seconds(uint64_t start_ticks) {
  if (!boot_time_) {
    const auto boot = read_boot_time(root_);
    if (!boot.ok()) return std::nullopt;
    boot_time_ = *boot;
  }
  static const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return *boot_time_ + static_cast<double>(start_ticks) / ticks_per_second;
}

}  // namespace gpuledger::identity
