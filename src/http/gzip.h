// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuledger::http {

// Level 1: metrics text shrinks tenfold already; higher levels take more time than they save.
Result<std::string> gzip(std::string_view plain, int level = 1);

}  // namespace gpuledger::http
