// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuledger::expose {

// The label of gpu_ledger_pod_info for a label of Kubernetes. As kube-state-metrics writes them, so that the same joins
// work: "app.kubernetes.io/name" is "label_app_kubernetes_io_name".
inline std::string pod_label_name(std::string_view kubernetes_name) {
  std::string name = "label_";
  for (const char c : kubernetes_name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name.push_back(plain ? c : '_');
  }
  return name;
}

}  // namespace gpuledger::expose
