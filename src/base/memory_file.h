// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace gpuledger {

// A file in memory, of no file system: a library that is not on disk can be loaded from it, also where /tmp forbids
// programs (noexec). It goes when it is closed. The name is what /proc/PID/maps shows.
Result<UniqueFd> make_memory_file(const char* name, std::string_view contents);

// By which this process can open it while it is not closed. Needs /proc.
std::string memory_file_path(const UniqueFd& file);

}  // namespace gpuledger
