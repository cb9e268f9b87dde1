// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/kin.h"

#include <gtest/gtest.h>

namespace gpuledger::attribute {
namespace {

ProcessIdentity in_pod(const std::string& pod, const std::string& container = "main",
                       const std::string& name = "python3") {
  ProcessIdentity identity;
  identity.name = name;
  identity.owner.kind = OwnerKind::kPod;
  identity.owner.name_space = "ml";
  identity.owner.pod = pod;
  identity.owner.container = container;
  return identity;
}

TEST(Kin, ReplicasOfOneWorkloadAreKin) {
  EXPECT_EQ(kin_of(in_pod("serve-7d4b9c6f5d-x2x4z")), kin_of(in_pod("serve-7d4b9c6f5d-9k2lm"))) << "a Deployment";
  EXPECT_EQ(kin_of(in_pod("serve-7d4b9c6f5d-x2x4z")), kin_of(in_pod("serve-58c7f9d6b4-9k2lm"))) << "after a rollout";
  EXPECT_EQ(kin_of(in_pod("db-0")), kin_of(in_pod("db-11"))) << "a StatefulSet";
  EXPECT_EQ(kin_of(in_pod("sweep-3-abcde")), kin_of(in_pod("sweep-12-fghij"))) << "an indexed Job";
  EXPECT_NE(kin_of(in_pod("db-0")), 0u);
}

TEST(Kin, OthersAreNot) {
  EXPECT_NE(kin_of(in_pod("serve-0")), kin_of(in_pod("train-0")));
  EXPECT_NE(kin_of(in_pod("serve-0")), kin_of(in_pod("serve-0", "sidecar")));
  EXPECT_NE(kin_of(in_pod("serve-0")), kin_of(in_pod("serve-0", "main", "tritonserver")));
  ProcessIdentity elsewhere = in_pod("serve-0");
  elsewhere.owner.name_space = "other";
  EXPECT_NE(kin_of(in_pod("serve-0")), kin_of(elsewhere));
}

ProcessIdentity of_kind(OwnerKind kind) {
  ProcessIdentity identity;
  identity.name = "python3";
  identity.owner.kind = kind;
  return identity;
}

// The state file keeps them: a signature that was learned must be found again after an update.
TEST(Kin, NumbersNeverChange) {
  EXPECT_EQ(kin_of(in_pod("serve-7d4b9c6f5d-x2x4z")), 5480026349622266460u);
  ProcessIdentity without = in_pod("serve-0", "");
  without.owner.name_space = Name();
  EXPECT_EQ(kin_of(without), 7492410152225230546u);
  ProcessIdentity step = of_kind(OwnerKind::kSlurmJob);
  step.owner.job = "70411";
  step.owner.step = "0";
  EXPECT_EQ(kin_of(step), 10108139068425712808u);
  ProcessIdentity container = of_kind(OwnerKind::kContainer);
  container.owner.runtime = "docker";
  EXPECT_EQ(kin_of(container), 0u) << "no name";
  container.owner.container = "ocr-worker-0";
  EXPECT_EQ(kin_of(container), 14359762232563131940u);
  ProcessIdentity service = of_kind(OwnerKind::kHost);
  service.owner.unit = "trainer.service";
  service.owner.user = "1000";
  EXPECT_EQ(kin_of(service), 15321657708139748548u);
  EXPECT_EQ(kin_of(of_kind(OwnerKind::kUnknown)), 0u);
}

TEST(Kin, WhatAPersonStartsHasNone) {
  ProcessIdentity by_hand;
  by_hand.name = "python3";
  by_hand.owner.user = "1000";
  EXPECT_EQ(kin_of(by_hand), 0u);
  by_hand.owner.unit = "trainer.service";
  EXPECT_NE(kin_of(by_hand), 0u);
}

}  // namespace
}  // namespace gpuledger::attribute
