// SPDX-License-Identifier: Apache-2.0
#include "attribute/estimate/shares.h"

#include <algorithm>

namespace gpuledger::attribute {
namespace {

double busiest_engine(const EngineUse& use) {
  return std::max({use.encoder.value, use.decoder.value, use.jpeg.value, use.ofa.value});
}

void hand_server_time_to_clients(std::span<const Tenant> tenants, std::vector<double>& shares) {
  const auto clients = std::count_if(tenants.begin(), tenants.end(), [](const Tenant& t) { return t.mps_client; });
  if (clients == 0) return;
  double served = 0;
  for (size_t i = 0; i < tenants.size(); ++i) {
    if (!tenants[i].mps_server) continue;
    served += shares[i];
    shares[i] = 0;
  }
  for (size_t i = 0; i < tenants.size(); ++i) {
    if (tenants[i].mps_client) shares[i] += served / static_cast<double>(clients);
  }
}

}  // namespace

std::optional<std::vector<double>> gpu_time_shares(UtilizationState utilization, std::span<const Tenant> tenants) {
  std::vector<double> shares(tenants.size(), 0.0);
  if (utilization == UtilizationState::kUnsupported) {
    for (size_t i = 0; i < tenants.size(); ++i) {
      if (tenants[i].mig_slices == 0) return std::nullopt;
      const double busy = tenants[i].mig_activity.value_or(Ratio{1}).value;
      shares[i] = busy * tenants[i].mig_slices * tenants[i].mig_part;
    }
    return shares;
  }
  if (utilization == UtilizationState::kFailed) return std::nullopt;

  const bool sm_used = std::any_of(tenants.begin(), tenants.end(), [](const Tenant& t) { return t.use.sm.value > 0; });
  for (size_t i = 0; i < tenants.size(); ++i) {
    shares[i] = sm_used ? tenants[i].use.sm.value : busiest_engine(tenants[i].use);
  }
  hand_server_time_to_clients(tenants, shares);
  return shares;
}

}  // namespace gpuledger::attribute
