// SPDX-License-Identifier: Apache-2.0
// What must hold of a web config whatever is in it.

#include <cstdint>
#include <string>

#include "http/web_config.h"
#include "invariant.h"

using gpuledger::fuzz::require;
using namespace gpuledger::http;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto config = parse_web_config(text, "/etc/web.yml");
  if (!config) return 0;
  for (const auto& [name, hash] : config->users)
    require(!name.empty() && hash.size() == 60 && hash.starts_with("$2"), "users have bcrypt hashes");
  for (const auto& [name, value] : config->headers)
    require((name + value).find_first_of("\r\n") == std::string::npos, "a header is one line");
  if (config->tls) require(config->tls->cert.given() && config->tls->key.given(), "TLS has a certificate and a key");
  return 0;
}
