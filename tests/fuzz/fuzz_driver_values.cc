// SPDX-License-Identifier: Apache-2.0
// What must hold of a driver's or an engine's answer in memory, whatever is written there. The first byte says which:
// even: a process list of NVML, with the count in the second byte; odd: a field value of DCGM.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "invariant.h"
#include "sample/dcgm/dcgm_value.h"
#include "sample/nvml/nvml_processes.h"

namespace {

using gpuledger::fuzz::require;

void check_process_list(const uint8_t* bytes, size_t size) {
  using namespace gpuledger::nvml;
  if (size == 0) return;
  const size_t count = bytes[0] % 65;
  std::vector<std::byte> buffer(count * kWidestEntry, kPoison);
  std::copy_n(reinterpret_cast<const std::byte*>(bytes + 1), std::min(buffer.size(), size - 1), buffer.begin());
  for (const bool mig : {false, true}) {
    const auto list = parse_process_entries(buffer, count, mig);
    if (!list) continue;
    require(list->size() <= count, "no more processes than entries");
    for (const ListedProcess& process : *list) {
      require(process.pid != 0 && process.pid <= 1u << 22, "a pid is one of the kernel's");
      require(!process.memory || process.memory->count <= 1ull << 50, "as much memory as there is");
      require(mig || !process.mig, "an instance only with MIG");
    }
  }
}

template <typename Value>
void check_field_value(const uint8_t* bytes, size_t size) {
  using namespace gpuledger::dcgm;
  Value value{};
  std::memcpy(&value, bytes, std::min(size, sizeof value));
  const Reading reading = reading_of(value);
  if (const auto number = reading.number()) require(std::isfinite(*number), "a number is a number");
  if (const auto count = reading.count()) require(*count < static_cast<uint64_t>(kBlank64), "a count is not blank");
  if (const auto text = reading.text()) require(!text->empty() && text->size() <= 256, "a text is within its field");
  if (const auto process = reading.template blob<RunningProcess>(kRunningProcessVersion))
    require(process->version == kRunningProcessVersion, "a structure of this version");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  if (bytes[0] % 2 == 0) {
    check_process_list(bytes + 1, size - 1);
  } else {
    check_field_value<gpuledger::dcgm::FieldValue_v1>(bytes + 1, size - 1);
    check_field_value<gpuledger::dcgm::FieldValue_v2>(bytes + 1, size - 1);
  }
  return 0;
}
