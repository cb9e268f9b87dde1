// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace gpuledger {

// A file in memory, outside any file system. A library that is not on disk can be loaded from it, even if /tmp is
// mounted noexec. It disappears when it is closed. The name is what /proc/PID/maps shows.
Result<UniqueFd> make_memory_file(const char* name, std::string_view contents);

// The path by which this process can open the file until it is closed. Needs /proc.
std::string memory_file_path(const UniqueFd& file);

}  // namespace gpuledger
