// SPDX-License-Identifier: Apache-2.0
#include "identity/user_names.h"

#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "base/file.h"
#include "base/quote.h"
#include "base/text.h"
#include "identity/cgroup_path.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLargestPasswd = 16 << 20;
constexpr size_t kLargestOwnFile = 64 << 10;
constexpr size_t kLongestUserName = 64;

// Whether uids here equal those of the host: no user namespace maps them. True without the file (a test's /proc).
bool shows_host_uids(const std::string& proc_root) {
  const auto map = read_file(proc_root + "/self/uid_map", kLargestOwnFile);
  if (!map.ok()) return true;
  std::istringstream numbers(*map);
  uint64_t inside = 1, outside = 1, count = 0;
  numbers >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count == 4294967295;
}

}  // namespace

std::unordered_map<std::string, std::string> parse_passwd(std::string_view text) {
  std::unordered_map<std::string, std::string> names;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view name = take_until(line, ':');
    take_until(line, ':');  // the password
    const std::string_view uid = take_until(line, ':');
    const bool number = !uid.empty() && uid.find_first_not_of("0123456789") == std::string_view::npos;
    if (name.empty() || name.front() == '#' || !number) continue;
    names.try_emplace(std::string(uid), clean_text(name, kLongestUserName));
  }
  return names;
}

bool is_on_host(std::string_view own_cgroup) {
  const CgroupHome home = parse_cgroup(own_cgroup);
  if (home.verdict != CgroupHome::Verdict::kClear || !home.whole_path || !home.container_id.empty()) return false;
  using Payer = CgroupHome::Payer;
  // In a cgroup namespace of a container the path is "/", without a service.
  return home.payer == Payer::kUser || (home.payer == Payer::kHost && !home.unit.empty());
}

std::string UserNames::find_file(const std::string& proc_root) {
  if (!shows_host_uids(proc_root)) return {};
  const std::string of_first = proc_root + "/1/root/etc/passwd";
  if (::access(of_first.c_str(), R_OK) == 0) return of_first;
  return is_on_host(read_file(proc_root + "/self/cgroup", kLargestOwnFile).value_or("")) ? "/etc/passwd" : "";
}

std::string UserNames::name_of(const std::string& uid) {
  if (file_.empty() || uid.empty()) return {};
  struct stat file {};
  if (::stat(file_.c_str(), &file) == 0) {
    constexpr int64_t kNanoseconds = 1'000'000'000;
    const Stamp stamp{file.st_ino, file.st_size, file.st_mtim.tv_sec * kNanoseconds + file.st_mtim.tv_nsec};
    if (stamp != last_) {
      // A file that cannot be read this time keeps its names and is read again.
      if (const auto text = read_file(file_, kLargestPasswd); text.ok()) {
        names_ = parse_passwd(*text);
        last_ = stamp;
      }
    }
  }
  const auto found = names_.find(uid);
  return found == names_.end() ? std::string() : found->second;
}

}  // namespace gpuledger::identity
