// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "expose/catalog.h"
#include "expose/expose.h"
#include "model/owner.h"

// What a kind of owner shows follows from its row in model/owner.h.
namespace gpuledger::expose {
namespace {

TEST(OwnerKinds, RowsStandInTheOrderOfTheEnum) {
  for (size_t i = 0; i < std::size(kOwnerKinds); ++i) EXPECT_EQ(static_cast<size_t>(kOwnerKinds[i].kind), i);
  EXPECT_EQ(&owner_kind(OwnerKind::kUnknown), &kOwnerKinds[std::size(kOwnerKinds) - 1]);
}

TEST(OwnerKinds, EveryFieldOfAnOwnerIsInTheList) {
  // Owner is its kind and its fields, so a field that is in no list changes this size.
  EXPECT_EQ(sizeof(Owner), sizeof(OwnerKind) + 4 + std::size(kOwnerFields) * sizeof(Name));
  std::set<std::string_view> names;
  for (const OwnerField& field : kOwnerFields) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    Owner owner;
    owner.*field.value = "x";
    EXPECT_NE(owner, Owner());
  }
  // Another name of a field that has one: the state file must not have it twice.
  for (const OwnerField& alias : kOwnerFieldAliases) {
    EXPECT_TRUE(std::any_of(std::begin(kOwnerFields), std::end(kOwnerFields),
                            [&](const OwnerField& field) { return field.value == alias.value; }));
    EXPECT_TRUE(names.insert(alias.name).second) << alias.name;
  }
  for (const OwnerKindRow& row : kOwnerKinds) {
    for (const OwnerField& field : row.fields) EXPECT_TRUE(names.contains(field.name)) << field.name;
  }
}

TEST(OwnerKinds, EachHasItsMetricsWithItsLabels) {
  for (const OwnerKindRow& row : kOwnerKinds) {
    std::string labels;
    for (const OwnerField& field : row.fields) labels.append(field.name).append(" ");
    labels += "gpu";
    std::set<std::string> found;
    for (const Family& family : catalog()) {
      const std::string stem = "gpu_ledger_" + std::string(row.metric) + "_";
      if (!family.name.starts_with(stem) || !family.labels.starts_with(labels)) continue;
      found.insert(family.name.substr(stem.size()));
    }
    for (const char* metric :
         {"energy_joules_total", "energy_standard_error_joules", "gpu_seconds_total", "memory_peak_bytes"}) {
      EXPECT_TRUE(found.contains(metric)) << row.word << " " << metric;
    }
  }
}

TEST(OwnerKinds, EachHasATextForPeople) {
  Owner pod{OwnerKind::kPod, "team", "train-0", "main", "uid-1", {}, {}, {}, {}, {}, {}};
  EXPECT_EQ(owner_text(pod), "team/train-0");
  pod.pod = Name();
  EXPECT_EQ(owner_text(pod), "pod uid-1");
  Owner job;
  job.kind = OwnerKind::kSlurmJob;
  job.job = "70411";
  EXPECT_EQ(owner_text(job), "Slurm job 70411");
  job.step = "0";
  EXPECT_EQ(owner_text(job), "Slurm job 70411.0");
  Owner container;
  container.kind = OwnerKind::kContainer;
  container.runtime = "docker";
  container.container_id = "0123456789abcdef";
  EXPECT_EQ(owner_text(container), "docker 0123456789ab");
  container.container = "ocr-worker";
  EXPECT_EQ(owner_text(container), "docker ocr-worker");
  Owner host;
  EXPECT_EQ(owner_text(host), "host");
  host.user = "1000";
  EXPECT_EQ(owner_text(host), "host, uid 1000");
  host.unit = "ssh.service";
  EXPECT_EQ(owner_text(host), "ssh.service");
  Owner unknown;
  unknown.kind = OwnerKind::kUnknown;
  EXPECT_EQ(owner_text(unknown), "unknown");
}

}  // namespace
}  // namespace gpuledger::expose
