// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/service_account.h"

#include <sys/utsname.h>

#include "base/version.h"

namespace gpuledger::identity {

std::string user_agent() {
  utsname machine{};
  ::uname(&machine);
  std::string arch = machine.machine;
  if (arch == "x86_64") arch = "amd64";
  if (arch == "aarch64") arch = "arm64";
  return std::string("gpu-ledger/") + version() + " (linux/" + arch + ")";
}

}  // namespace gpuledger::identity
