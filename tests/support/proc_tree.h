// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/ids.h"

namespace gpuledger::testing {

// A test's /proc, in a temporary folder.
class ProcTree {
 public:
  ProcTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gpu-ledger-proc-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    write("stat", "cpu  1 2 3 4\nintr 5\nctxt 6\nbtime 1700000000\nprocesses 9\n");
  }
  ~ProcTree() { std::filesystem::remove_all(root_); }
  ProcTree(const ProcTree&) = delete;
  ProcTree& operator=(const ProcTree&) = delete;

  const std::string& root() const { return root_; }

  void add(Pid pid, const std::string& name, uint64_t start_ticks, const std::string& cgroup = "0::/\n") {
    const std::string folder = std::to_string(pid);
    write(folder + "/stat", folder + " (" + name + ") S 1 2 3 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 5 0 " +
                                std::to_string(start_ticks) + " 1000 200 18446744073709551615 0\n");
    write(folder + "/comm", name + "\n");
    write(folder + "/cgroup", cgroup);
  }
  void remove(Pid pid) { std::filesystem::remove_all(root_ + "/" + std::to_string(pid)); }

  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(root_) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

 private:
  std::string root_;
};

}  // namespace gpuledger::testing
