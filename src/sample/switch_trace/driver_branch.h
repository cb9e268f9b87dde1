// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace gpuledger::switch_trace {

// A driver branch with known structures. All of them share the layouts of rm_abi.h, except for these values.
struct DriverBranch {
  unsigned major = 0;
  size_t memory_params_size = 0;  // of the class's parameters in the kernel
  Nanoseconds delivery{0};        // how old a record may be when the kernel puts it into the ring
};

std::span<const DriverBranch> known_branches();

// version: "580.159.04". A branch that is not in the table is an error: with another layout the kernel would read and
// write at wrong places.
Result<DriverBranch> find_branch(std::string_view version);

}  // namespace gpuledger::switch_trace
