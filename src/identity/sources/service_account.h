// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gpuledger::identity {

// What Kubernetes puts into a pod for talking to it. Both files change while the program runs.
struct ServiceAccount {
  std::string token_file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
  std::string ca_file = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
};

// The token without the white space around it. Read for every request, which is seldom: it is replaced hourly.
Result<std::string> read_token(const std::string& path);

// "gpu-ledger/0.2.0 (linux/amd64)": admins find us in audit logs by it.
std::string user_agent();

}  // namespace gpuledger::identity
