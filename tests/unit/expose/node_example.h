// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "expose/expose.h"
#include "exposition_parser.h"
#include "model/snapshot.h"

namespace gpuledger::expose {

// A node with everything that can be seen at once, whose books balance:
// GPU 0: H200, a pod alone then shared with a host process, an exited process of the pod;
// GPU 1: A100 with MIG, which cannot say who works, one process in a slice, a Slurm job gone long ago;
// GPU 2: lost, with a docker container's process on it;
// GPU 3: T4 without an energy counter, nobody on it, but pods were whose accounts are closed.
Cycle node_example();
ExposeOptions example_options();

// As a scraper reads it.
Exposition expose(const Cycle& cycle, const ExposeOptions& options = example_options());
using Shown = std::optional<std::string>;

inline constexpr uint64_t kMiB = 1 << 20;
inline constexpr uint64_t kGiB = 1 << 30;

ProcessAccount& process_of(Cycle& cycle, Pid pid);

}  // namespace gpuledger::expose
