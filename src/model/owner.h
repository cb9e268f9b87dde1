// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>

#include "base/name.h"

// Owners of processes. A new kind of owner is a word in OwnerKind and a row of kOwnerKinds here, and a parser: for the
// jobs of a batch scheduler a row in identity/batch_scheduler.cc. Metrics, JSON, state file, `top`, the bill and the
// page follow.
namespace gpuledger {

// The first that fits of pod, Slurm job, container, host: every joule of a process is booked to exactly one owner.
// Unknown: the process exited before its owner could be read.
enum class OwnerKind { kPod, kSlurmJob, kContainer, kHost, kUnknown };

// Equal owners share one account. Fields that do not belong to the kind are empty.
struct Owner {
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;    // pod
  Name pod;           // pod
  Name container;     // pod, container: its name
  Name pod_uid;       // pod
  Name runtime;       // container: docker, podman
  Name container_id;  // container
  Name job;           // job of a batch scheduler (Slurm)
  Name step;          // the same
  Name unit;          // host: the systemd service
  Name user;          // host: the uid
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

// A field and its name in labels, JSON and the state file.
struct OwnerField {
  std::string_view name;
  Name Owner::*value;
};
inline constexpr OwnerField kNamespaceField{"namespace", &Owner::name_space};
inline constexpr OwnerField kPodField{"pod", &Owner::pod};
inline constexpr OwnerField kContainerField{"container", &Owner::container};
inline constexpr OwnerField kPodUidField{"pod_uid", &Owner::pod_uid};
inline constexpr OwnerField kRuntimeField{"runtime", &Owner::runtime};
inline constexpr OwnerField kContainerIdField{"container_id", &Owner::container_id};
inline constexpr OwnerField kJobField{"job", &Owner::job};
// Prometheus has a label job of its own. `job` goes in the version after this one.
inline constexpr OwnerField kSlurmJobIdField{"slurm_job_id", &Owner::job};
inline constexpr OwnerField kStepField{"step", &Owner::step};
inline constexpr OwnerField kUnitField{"unit", &Owner::unit};
inline constexpr OwnerField kUserField{"user", &Owner::user};

// All of them, once, in the order of the state file.
inline constexpr OwnerField kOwnerFields[] = {kNamespaceField, kPodField,         kContainerField, kPodUidField,
                                              kRuntimeField,   kContainerIdField, kJobField,       kStepField,
                                              kUnitField,      kUserField};

// Second names of them, in labels and JSON.
inline constexpr OwnerField kOwnerFieldAliases[] = {kSlurmJobIdField};

inline constexpr OwnerField kPodFields[] = {kNamespaceField, kPodField, kContainerField, kPodUidField};
inline constexpr OwnerField kSlurmFields[] = {kSlurmJobIdField, kJobField, kStepField};
inline constexpr OwnerField kContainerFields[] = {kRuntimeField, kContainerIdField, kContainerField};
inline constexpr OwnerField kHostFields[] = {kUnitField, kUserField};

// Processes with the same program are kin if these fields of their owners are equal (attribute/books/kin.h).
struct KinField {
  enum class Use { kMayBeEmpty, kNeeded, kWorkload };  // kWorkload: needed; "db" of "db-0"
  Name Owner::*value;
  Use use;
};
inline constexpr KinField kPodKin[] = {{&Owner::name_space, KinField::Use::kMayBeEmpty},
                                       {&Owner::pod, KinField::Use::kWorkload},
                                       {&Owner::container, KinField::Use::kMayBeEmpty}};
// Steps of one job. The jobs of an array have different numbers, and nothing here names the array.
inline constexpr KinField kJobKin[] = {{&Owner::job, KinField::Use::kNeeded}};
inline constexpr KinField kContainerKin[] = {{&Owner::runtime, KinField::Use::kMayBeEmpty},
                                             {&Owner::container, KinField::Use::kWorkload}};
inline constexpr KinField kHostKin[] = {{&Owner::unit, KinField::Use::kNeeded}};

struct OwnerKindRow {
  OwnerKind kind;
  std::string_view word;               // in JSON, in the state file and in the label kind
  std::string_view metric;             // its metrics are gpu_ledger_<metric>_energy_joules_total and so on
  std::string_view processes;          // for HELP, in place of {}
  std::span<const OwnerField> fields;  // its labels, in this order
  std::string (*text)(const Owner&);   // for people, in one short line
  std::string_view group;              // on the page, in place of a namespace
  std::string_view kin_word;           // kin are of one kind: begins the hash that the state file keeps
  std::span<const KinField> kin;       // empty: it has none
  bool of_user = false;                // all its processes are of one user, who is shown
  bool never_pod = false;              // its processes are surely of no pod
};

inline constexpr OwnerKindRow kOwnerKinds[] = {
    {OwnerKind::kPod, "pod", "pod", "the processes of a Kubernetes container, running and exited", kPodFields,
     [](const Owner& owner) { return owner.pod.empty() ? "pod " + owner.pod_uid : owner.name_space + "/" + owner.pod; },
     "pods without a name", "pod", kPodKin},
    {OwnerKind::kSlurmJob, "slurm_job", "slurm_job", "the processes of a Slurm job step, running and exited",
     kSlurmFields,
     [](const Owner& owner) { return "Slurm job " + owner.job + (owner.step.empty() ? "" : "." + owner.step); },
     "Slurm", "slurm", kJobKin, true, true},
    {OwnerKind::kContainer, "container", "container",
     "the processes of a container outside Kubernetes, running and exited", kContainerFields,
     [](const Owner& owner) {
       return owner.runtime + " " +
              (owner.container.empty() ? owner.container_id.str().substr(0, 12) : owner.container.str());
     },
     "containers", "container", kContainerKin, false, true},
    {OwnerKind::kHost, "host", "host",
     "the processes of a systemd service and uid that belong to no pod, Slurm job or container, running and exited",
     kHostFields,
     [](const Owner& owner) {
       if (!owner.unit.empty()) return owner.unit.str();
       return owner.user.empty() ? std::string("host") : "host, uid " + owner.user;
     },
     "host", "unit", kHostKin},
    {OwnerKind::kUnknown,
     "unknown",
     "unknown_owner",
     "processes that exited before their owner could be read (a pod, a Slurm job, a container or the host)",
     {},
     [](const Owner&) { return std::string("unknown"); },
     "unknown",
     "",
     {}},
};

// Rows stand in the order of the enum; a test checks it.
constexpr const OwnerKindRow& owner_kind(OwnerKind kind) {
  return kOwnerKinds[static_cast<size_t>(kind)];
}

inline std::string owner_text(const Owner& owner) {
  return owner_kind(owner.kind).text(owner);
}

}  // namespace gpuledger
