// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "http/web_config.h"

namespace gpuledger::http {

// For a reload. It may change what a kind of protection consists of, as users or certificates, but may not take a kind
// away: a file that is cut off would open what was closed. The error names those that `after` lacks.
Status check_keeps_protection(const WebConfig& before, const WebConfig& after);

}  // namespace gpuledger::http
