// SPDX-License-Identifier: Apache-2.0
#include "base/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace gpuledger {
namespace {

// Enough for some thousand processes and connections. Not the maximum: some libraries loop over every number up to the
// limit.
constexpr rlim_t kWanted = 65'536;
constexpr size_t kUsual = 1024;

}  // namespace

size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUsual;
  return static_cast<size_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 30));
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, kWanted);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace gpuledger
