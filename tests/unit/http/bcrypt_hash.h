// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <crypt.h>

#include <memory>
#include <string>

namespace gpuledger::http {

// Cost 4, the lowest there is, takes a millisecond.
inline std::string bcrypt_hash(const std::string& password, int cost = 4) {
  char salt[CRYPT_GENSALT_OUTPUT_SIZE];
  if (::crypt_gensalt_rn("$2y$", static_cast<unsigned long>(cost), nullptr, 0, salt, sizeof salt) == nullptr) return {};
  const auto scratch = std::make_unique<crypt_data>();
  return ::crypt_r(password.c_str(), salt, scratch.get());
}

}  // namespace gpuledger::http
