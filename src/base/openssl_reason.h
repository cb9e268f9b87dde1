// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/err.h>

#include <string>

namespace gpuledger {

// OpenSSL's text for the last failure. Also empties its queue, which would spoil the next call. A target that includes
// this must link OpenSSL.
inline std::string openssl_reason() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "unknown reason" : reason;
}

}  // namespace gpuledger
