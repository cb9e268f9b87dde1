// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuledger::identity {

// The credentials that Kubernetes mounts into a pod. Both files change while the program runs: the token hourly.
struct ServiceAccount {
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
};

// "gpu-ledger/0.2.0 (linux/amd64)": identifies us in audit logs.
std::string user_agent();

}  // namespace gpuledger::identity
