// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "app/bill/answer.h"
#include "app/bill/meaning.h"

namespace gpuledger::app {

struct BillNode;

// Who the owners are. Gathered over all readings: a fact may be missing in some.
struct BillFacts {
  using Labels = std::map<std::string, std::string>;
  struct Owner {
    enum class Form { kOwner, kEnded, kNobody };
    Form form = Form::kOwner;
    std::string kind;
    Labels labels;
  };
  std::map<std::string, Owner> owners;
  std::map<std::string, Labels> pods;         // their labels, by pod_key
  std::map<std::string, Labels> jobs;         // user, account and partition, by job_key
  std::map<std::string, std::string> models;  // of GPUs, by UUID

  std::set<std::string> server_replicas;  // values of the label `replica` that servers add to all series of a target

  static std::string pod_key(const std::string& cluster, std::string_view name_space, std::string_view pod,
                             std::string_view uid);
  // By node: clusters number their jobs alike, and a server may not label them.
  static std::string job_key(const BillNode& node, const OwnerKindRow& kind, std::string_view id);
};

// The label that names the job of a batch scheduler. Empty: owners of this kind are no jobs.
std::string_view job_label(const OwnerKindRow& kind);

// Adds what an info series says. Others say nothing. `now`: it is so at the time of the reading, not only at some time
// before, so it counts more than what is known.
void read_facts(const BillSeries& series, const SeriesMeaning& meaning, bool now, BillFacts& facts);

// The owner of a series, as a key of BillFacts::owners. Empty: it has none.
std::string owner_of_series(const BillSeries& series, const SeriesMeaning& meaning, BillFacts& facts);
// One that has no series of its own any more, of one kind and, for pods, namespace.
std::string ended_owner(const std::string& kind, const std::string& name_space, BillFacts& facts);
// An owner in words, for messages.
std::string owner_text(const std::string& owner, const BillFacts& facts);
// The pod of an allocation. Without a uid it has the labels that a pod of its name has had up to now.
std::string allocated_pod(const BillSeries& series, BillFacts& facts);
// The Slurm job of an allocation, which also says whose it is.
std::string allocated_job(const BillSeries& series, BillFacts& facts);

}  // namespace gpuledger::app
