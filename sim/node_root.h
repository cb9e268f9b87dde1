// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lives.h"
#include "scenario.h"

namespace gpuledger::sim {

// The part of the node's file system that identifies owners: proc/<pid>/... for every running simulated process, and
// the answers of a kubelet and a docker daemon (kubelet_files.h). Kept while the library is loaded, even if no client
// has the driver open: a machine's /proc does not depend on the driver. A file that cannot be written is left out;
// readers then see a process that they cannot read, which also happens on real nodes.
class NodeRoot {
 public:
  NodeRoot(std::string folder, const Scenario& scenario, int64_t epoch_micros);
  ~NodeRoot();
  NodeRoot(const NodeRoot&) = delete;
  NodeRoot& operator=(const NodeRoot&) = delete;

  void keep(Millis now);
  // The scenario was changed.
  void look_again() { next_change_ = 0; }

 private:
  std::filesystem::path driver_folder(const GpuSpec& gpu) const;
  void write_process(const Life& life);
  void remove_process(unsigned pid);
  void write_slurm_jobs();
  void write_daemons(const std::vector<Life>& lives, Millis now);
  void write_file(const std::filesystem::path& path, const std::string& text);

  const std::filesystem::path folder_;
  const Scenario& scenario_;
  const int64_t boot_seconds_;
  const int64_t epoch_micros_;
  std::map<unsigned, Millis> living_;           // pid, start
  std::map<std::string, std::string> written_;  // text by file
  bool started_ = false;
  Millis written_at_ = 0;
  Millis next_change_ = 0;
};

// One line of cgroup v2, as each runtime lays it out.
std::string cgroup_line(const OwnerSpec& owner);

}  // namespace gpuledger::sim
