// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>

namespace gpuledger::support {

// A minimal root may have no /etc/hosts. Tests that need the name are skipped there.
inline bool knows_localhost() {
  addrinfo* found = nullptr;
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

}  // namespace gpuledger::support
