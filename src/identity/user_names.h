// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gpuledger::identity {

// "name:x:1000:..." in lines: uid to name. The first line of a uid counts, as for the C library.
std::unordered_map<std::string, std::string> parse_passwd(std::string_view text);

// Whether a program with this /proc/self/cgroup runs on the host and not in a container. False also if that is not
// certain.
bool is_on_host(std::string_view own_cgroup);

// Names of uids in the host's passwd. A file only: users of a directory service are not in it, and asking one could
// wait for a network.
class UserNames {
 public:
  // empty: no names
  explicit UserNames(std::string file) : file_(std::move(file)) {}

  // The host's passwd: that of its first process, else our own if we are on the host. A container has another one.
  // Empty: not found, or uids in this /proc are not the host's (a user namespace).
  static std::string find_file(const std::string& proc_root);

  // Empty: not in the file. Reads it again after a change.
  std::string name_of(const std::string& uid);

 private:
  struct Stamp {
    ino_t inode = 0;
    off_t size = -1;
    int64_t changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };

  std::string file_;
  Stamp last_;
  std::unordered_map<std::string, std::string> names_;
};

}  // namespace gpuledger::identity
