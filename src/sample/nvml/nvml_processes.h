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

// The buffer for a process list from the driver: large enough for the widest entries, filled with a pattern that shows
// how far it wrote.
inline constexpr size_t kWidestEntry = 32;
inline constexpr std::byte kPoison{0xA7};

// Early R535 drivers wrote 32-byte entries under names whose entries have 24 bytes, and one vendor's driver writes 16.
// The size is found from how far the driver wrote and, if that is unclear, from which one gives plausible entries.
// Entries with pid 0 are left out. mig: false ignores instance numbers.
Result<std::vector<ListedProcess>> parse_process_entries(std::span<const std::byte> buffer, size_t count, bool mig);

// Compute, graphics and MPS lists as one: by pid and MIG instance, every entry listed. migs: the GPU's instances while
// MIG is on; each is read by its own handle if the GPU's has no data (needs rights). An error (already counted) means
// that the lists could not be read; the last ones are then used.
Result<std::vector<ProcessSample>> read_process_lists(Session& session, Device gpu, bool mig,
                                                      const std::vector<MigDevice>& migs);

}  // namespace gpuledger::nvml
