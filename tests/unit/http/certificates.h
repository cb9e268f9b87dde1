// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuledger::http {

struct Identity {
  std::string cert;  // PEM
  std::string key;   // PEM
};

// Made for one test run and worthless after it. alternative_names as OpenSSL writes them: "DNS:a,IP:127.0.0.1".
Identity make_authority(const std::string& name);
Identity make_certificate(const std::string& name, const Identity& authority,
                          const std::string& alternative_names = "");

}  // namespace gpuledger::http
