#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "identity/node_directory.h"
#include "identity/proc_reader.h"
#include "model/identity.h"
#include "model/sample.h"

namespace gpuledger::identity {

// Whose is it? Joins the pids of a batch with /proc and with the pods' names. Never blocks on a network:
// the directory only hands out what it has. Used by the sampler thread alone.
class Resolver {
 public:
  Resolver(ProcReader proc, NodeDirectory directory) : proc_(std::move(proc)), directory_(std::move(directory)) {}

  IdentityMap resolve(const SampleBatch& batch);

 private:
  // Reads name and home between two looks at the start time, so that a pid that changes hands midway is
  // never given the other's name. Empty: no such process.
  std::optional<ProcessIdentity> read_identity(Pid pid, const PodView& pods, bool& without_owner);
  bool refresh(Pid pid, bool scanned, const PodView& pods, IdentityMap& map);

  struct Known {
    ProcessIdentity identity;
    bool without_owner = false;
  };

  ProcReader proc_;
  NodeDirectory directory_;
  std::map<Pid, Known> known_;
  std::set<Pid> gone_;  // were known; the driver may go on listing them for a while
};

}  // namespace gpuledger::identity
