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

// Whose is it? Joins the pids of a batch with /proc and with what the directory's sources have learned so far. Never
// blocks on a network: a source only hands out what it has. Used by the sampler thread alone.
class Resolver final : public IdentitySource {
 public:
  Resolver(ProcReader proc, NodeDirectory directory);

  std::shared_ptr<const IdentityMap> resolve(const SampleBatch& batch) override;
  void meet_early(const std::vector<Pid>& pids, Nanoseconds now) override;
  // How /proc and each of the sources are doing.
  std::vector<SourceHealth> health() const override;
  // Before the first batch: until every source has answered or failed, or the patience is over. Without it the first
  // cycle of a program that prints one and ends would have no names.
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
    std::optional<ProcReader::Stamp> stamp;  // of who cannot be watched; no younger than the rest
    bool met_early = false;                  // and not handed on yet
  };

  // Reads name and home between two looks at the start time, so that a pid that changes hands midway is never given
  // the other's name. kNotFound: no such process; any other error says nothing about whether it lives.
  Result<Known> read_process(Pid pid);
  Status read_home(Pid pid, Known& known);
  Error failed(const Error& error);
  void give_name(Known& known) const;
  bool has_ended(Pid pid, Known& known, const std::set<Pid>& ended) const;
  bool is_young(const Known& known, const SampleBatch& batch) const;
  void read_name_again(Known& known, const SampleBatch& batch);
  void meet(Pid pid, Nanoseconds now);
  void forget(Pid pid);
  bool take_names();
  void infer_pods(const SampleBatch& batch);
  std::shared_ptr<const IdentityMap> write_map(const SampleBatch& batch) const;
  ProcessIdentity stranger(Pid pid, const SampleBatch& batch) const;
  std::vector<PodFacts> pod_facts() const;
  void ask_for_names() const;

  ProcReader proc_;
  const ProcView view_;
  NodeDirectory directory_;
  ProcessWatch watch_;
  NameBook names_;
  std::shared_ptr<const GrantView> grants_;
  std::vector<Allocation> allocations_;
  std::map<Pid, Known> known_;
  std::set<Pid> gone_;  // were known; the driver may go on listing them for a while
  std::vector<Pid> last_pids_;
  bool changed_ = true;  // since the last map was written
  bool rescan_wanted_ = false;
  std::shared_ptr<const IdentityMap> last_map_;
  std::map<std::string, uint64_t> errors_;  // of reading /proc, by code
};

}  // namespace gpuledger::identity
