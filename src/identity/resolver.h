// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "identity/naming.h"
#include "identity/node_directory.h"
#include "identity/proc_reader.h"
#include "identity/process_watch.h"
#include "model/identity_source.h"

namespace gpuledger::identity {

// Finds the owner of each pid of a batch from /proc and from what the directory's sources have so far. Never blocks on
// a network: sources return what they have. Used only by the sampler thread.
class Resolver final : public IdentitySource {
 public:
  Resolver(ProcReader proc, NodeDirectory directory);

  std::shared_ptr<const IdentityMap> resolve(const SampleBatch& batch) override;
  void meet_early(const std::vector<Pid>& pids, Nanoseconds now) override;
  // Health of /proc and of each source.
  std::vector<SourceHealth> health() const override;
  // Before the first batch: waits until every source has answered or failed, or until `patience` is over. Otherwise a
  // program that prints one cycle and exits would have no names.
  void wait_for_names(Nanoseconds patience) const;

 private:
  struct Known {
    ProcessIdentity identity;
    CgroupHome home;
    Naming naming = Naming::kComplete;
    Nanoseconds first_read{0};
    Nanoseconds last_read{0};
    bool home_is_read = false;  // false: its cgroups could not be read
    bool watched = false;
    std::optional<ProcReader::Stamp> stamp;  // if it cannot be watched; no newer than the rest
    bool met_early = false;                  // not handed on yet
  };

  // Reads name and cgroup between two reads of the start time, so that a reused pid never gets the other process's
  // name. kNotFound: no such process; any other error does not mean that it exited.
  Result<Known> read_process(Pid pid);
  Status read_home(Pid pid, const std::string& uid, Known& known);
  Error failed(const Error& error);
  void give_name(Known& known) const;
  void read_job(ProcessIdentity& identity);
  bool has_ended(Pid pid, Known& known, const std::set<Pid>& ended) const;
  bool is_young(const Known& known, const SampleBatch& batch) const;
  void read_name_again(Known& known, const SampleBatch& batch);
  void meet(Pid pid, Nanoseconds now);
  void forget(Pid pid);
  bool take_names();
  void infer_pods(const SampleBatch& batch);
  void read_slurm_holders(const SampleBatch& batch);
  std::shared_ptr<const IdentityMap> write_map(const SampleBatch& batch) const;
  ProcessIdentity stranger(Pid pid, const SampleBatch& batch) const;
  std::vector<PodFacts> pod_facts() const;
  std::vector<GpuRequest> gpu_requests(const Pod& pod) const;
  bool is_needed(std::string_view runtime) const;
  void ask_for_names() const;

  ProcReader proc_;
  const ProcView view_;
  NodeDirectory directory_;
  ProcessWatch watch_;
  NameBook names_;
  std::shared_ptr<const GrantView> grants_;
  std::vector<Allocation> allocations_;
  std::vector<Allocation> slurm_allocations_;
  std::map<std::string, SlurmHolder, std::less<>> slurm_holders_;
  std::map<Pid, Known> known_;
  std::set<Pid> gone_;  // exited; the driver may list them a while longer
  std::vector<Pid> last_pids_;
  bool changed_ = true;  // since the last map
  bool rescan_wanted_ = false;
  std::shared_ptr<const IdentityMap> last_map_;
  std::map<std::string, uint64_t> errors_;  // of /proc reads, by code
};

}  // namespace gpuledger::identity
