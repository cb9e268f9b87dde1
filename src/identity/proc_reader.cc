#include "identity/proc_reader.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLargestProcFile = 64 << 10;
constexpr size_t kLargestStat = 4 << 20;  // /proc/stat grows with the number of interrupts
constexpr size_t kLongestName = 64;

}  // namespace

Result<uint64_t> parse_start_ticks(std::string_view stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return Error{Code::kMalformed, "no ')' in stat"};
  std::string_view rest = stat.substr(name_end + 1);
  constexpr int kFieldsBeforeStart = 19;  // from field 3 (state) to field 21
  for (int field = 0; field <= kFieldsBeforeStart; ++field) {
    const size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) return Error{Code::kMalformed, "stat ends before the start time"};
    rest.remove_prefix(begin);
    if (field == kFieldsBeforeStart) break;
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  uint64_t ticks = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  if (error != std::errc()) return Error{Code::kMalformed, "start time in stat is no number"};
  return ticks;
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

std::string clean_name(std::string_view name) {
  std::string clean;
  for (char c : name.substr(0, kLongestName)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) clean.push_back(c);
  }
  return clean.empty() ? "unknown" : clean;
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

Result<uint64_t> ProcReader::read_start_ticks(Pid pid) const {
  const auto stat = read_file(path(pid, "stat"), kLargestProcFile);
  if (!stat.ok()) return stat.error();
  return parse_start_ticks(*stat);
}

Result<std::string> ProcReader::read_name(Pid pid) const {
  auto comm = read_file(path(pid, "comm"), kLargestProcFile);
  if (!comm.ok()) return comm.error();
  if (comm->ends_with('\n')) comm->pop_back();
  return clean_name(*comm);
}

Result<std::string> ProcReader::read_cgroup(Pid pid) const {
  return read_file(path(pid, "cgroup"), kLargestProcFile);
}

std::optional<double> ProcReader::start_time_seconds(uint64_t start_ticks) {
  if (!boot_time_) {
    const auto stat = read_file(root_ + "/stat", kLargestStat);
    const auto boot = stat.ok() ? parse_boot_time(*stat) : Result<double>(stat.error());
    if (!boot.ok()) return std::nullopt;
    boot_time_ = *boot;
  }
  static const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return *boot_time_ + static_cast<double>(start_ticks) / ticks_per_second;
}

}  // namespace gpuledger::identity
