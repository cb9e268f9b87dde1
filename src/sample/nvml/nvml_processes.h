// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/sample.h"
#include "sample/nvml/nvml_calls.h"
#include "sample/nvml/nvml_mig.h"

namespace gpuledger::nvml {

struct ListedProcess {
  Pid pid = 0;
  std::optional<MigId> mig;
  std::optional<Bytes> memory;
};

// The buffer the driver writes a process list into: room for the widest entries it may use, filled with a
// pattern that shows how far it wrote.
inline constexpr size_t kWidestEntry = 32;
inline constexpr std::byte kPoison{0xA7};

// Early R535 drivers wrote 32-byte entries under names whose entries have 24 bytes, and some vendor's writes
// 16; which it is, is seen from how far the driver wrote and, if that is not clear, from which reading makes
// sense. Entries with pid 0 are left out. mig: false takes every instance number as none.
Result<std::vector<ListedProcess>> parse_process_entries(std::span<const std::byte> buffer, size_t count, bool mig);

// Compute, graphics and MPS lists as one: by pid and MIG instance, every entry listed. migs: the GPU's
// instances while MIG is on; each is asked by its own handle where the GPU's does not say (needs rights).
// An error (counted already) means that the lists could not be had; the last ones then are the best there is.
Result<std::vector<ProcessSample>> read_process_lists(Session& session, Device gpu, bool mig,
                                                      const std::vector<MigDevice>& migs);

}  // namespace gpuledger::nvml
