// SPDX-License-Identifier: Apache-2.0
#include "net/basic_auth.h"

#include <openssl/evp.h>

namespace gpuledger::net {

std::string basic_auth(std::string_view user_password) {
  std::string code(4 * ((user_password.size() + 2) / 3) + 1, '\0');  // and a zero at the end
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(code.data()),
                                   reinterpret_cast<const unsigned char*>(user_password.data()),
                                   static_cast<int>(user_password.size()));
  code.resize(static_cast<size_t>(size));
  return "Basic " + code;
}

}  // namespace gpuledger::net
