// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/shares.h"

#include <gtest/gtest.h>

namespace gpuledger::attribute {
namespace {

Tenant busy(double sm, double encoder = 0) {
  Tenant tenant;
  tenant.use.sm = Ratio{sm};
  tenant.use.encoder = Ratio{encoder};
  return tenant;
}

TEST(Shares, TimeSlicingIsTheDriversUtilization) {
  const std::vector<Tenant> tenants = {busy(0.6), busy(0.2), busy(0)};
  const auto shares = gpu_time_shares(UtilizationState::kKnown, tenants);
  ASSERT_TRUE(shares);
  EXPECT_EQ(*shares, (std::vector<double>{0.6, 0.2, 0}));
}

TEST(Shares, OtherEnginesCountOnlyWhenNobodyUsedTheSms) {
  const std::vector<Tenant> mixed = {busy(0.1), busy(0, 0.9)};
  EXPECT_EQ((*gpu_time_shares(UtilizationState::kKnown, mixed))[1], 0);
  const std::vector<Tenant> video = {busy(0, 0.3), busy(0, 0.9)};
  EXPECT_EQ((*gpu_time_shares(UtilizationState::kKnown, video))[1], 0.9);
}

TEST(Shares, MpsServersTimeIsItsClients) {
  std::vector<Tenant> tenants = {busy(0.8), busy(0), busy(0), busy(0.1)};
  tenants[0].mps_server = true;
  tenants[1].mps_client = tenants[2].mps_client = true;
  const auto shares = *gpu_time_shares(UtilizationState::kKnown, tenants);
  EXPECT_EQ(shares[0], 0);
  EXPECT_DOUBLE_EQ(shares[1], 0.4);
  EXPECT_DOUBLE_EQ(shares[2], 0.4);
  EXPECT_DOUBLE_EQ(shares[3], 0.1) << "a process beside MPS keeps its own";
}

TEST(Shares, AServerWithoutClientsKeepsItsTime) {
  std::vector<Tenant> tenants = {busy(0.8)};
  tenants[0].mps_server = true;
  EXPECT_EQ((*gpu_time_shares(UtilizationState::kKnown, tenants))[0], 0.8);
}

TEST(Shares, MigInstancesCountWithTheirSlices) {
  std::vector<Tenant> tenants(3);
  tenants[0].mig_slices = 3;
  tenants[1].mig_slices = tenants[2].mig_slices = 4;
  tenants[1].mig_part = tenants[2].mig_part = 0.5;
  const auto shares = *gpu_time_shares(UtilizationState::kUnsupported, tenants);
  EXPECT_EQ(shares, (std::vector<double>{3, 2, 2}));
}

TEST(Shares, UnknownStaysUnknown) {
  const std::vector<Tenant> tenants = {busy(0.5), busy(0.5)};
  EXPECT_FALSE(gpu_time_shares(UtilizationState::kUnsupported, tenants));
  EXPECT_FALSE(gpu_time_shares(UtilizationState::kFailed, tenants));
}

}  // namespace
}  // namespace gpuledger::attribute
