// SPDX-License-Identifier: Apache-2.0
#include "field_values.h"

// Memory errors, retired pages and remapped rows. All counts come from the fields, so that both kinds of calls agree.
using namespace gpuledger::sim;

namespace gpuledger::nvml {
namespace {

// Corrected and uncorrected, since the driver was loaded and over the GPU's life.
constexpr unsigned kEccFields[2][2] = {{kFieldEccCorrectedVolatile, kFieldEccCorrectedAggregate},
                                       {kFieldEccUncorrectedVolatile, kFieldEccUncorrectedAggregate}};
constexpr unsigned kRetiredFields[] = {kFieldRetiredSingleBit, kFieldRetiredDoubleBit};

// An H200 counts only for its memory and the SRAM on the chip; GPUs before Ampere count for each place but have no sum.
bool counts_at(const GpuModel& model, unsigned location) {
  if (location == kLocationDeviceMemory) return true;
  return remaps_rows(model) == (location == kLocationSram);
}

Return retired_pages(const char* call, Device device, unsigned cause, unsigned* count, unsigned long long* addresses,
                     unsigned long long* timestamps) {
  return on_whole_gpu(call, device, [&](Node& node, Target& target) {
    if (!count || cause >= std::size(kRetiredFields)) return kInvalidArgument;
    unsigned long long pages = 0;
    const Return result = read_count(node, target, kRetiredFields[cause], &pages);
    if (result != kSuccess) return result;
    const unsigned capacity = *count;
    *count = static_cast<unsigned>(pages);
    if (capacity < pages) return kInsufficientSize;
    if (pages > 0 && !addresses) return kInvalidArgument;
    for (unsigned i = 0; i < pages; ++i) {
      addresses[i] = (0x1000ull + i) << 16;
      if (timestamps) timestamps[i] = node.wall_micros(0);
    }
    return kSuccess;
  });
}

}  // namespace

extern "C" {

Return nvmlDeviceGetEccMode(Device device, unsigned* current, unsigned* pending) {
  return on_gpu(__func__, device, [&](Node&, Gpu& gpu) {
    if (!current || !pending) return kInvalidArgument;
    if (!has_ecc(gpu.spec().model)) return kNotSupported;
    *current = *pending = kFeatureEnabled;
    return kSuccess;
  });
}

Return nvmlDeviceGetTotalEccErrors(Device device, unsigned error, unsigned counter, unsigned long long* count) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    if (!count || error > 1 || counter > 1) return kInvalidArgument;
    return read_count(node, target, kEccFields[error][counter], count);
  });
}

Return nvmlDeviceGetMemoryErrorCounter(Device device, unsigned error, unsigned counter, unsigned location,
                                       unsigned long long* count) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    if (!count || error > 1 || counter > 1 || location >= kMemoryLocations) return kInvalidArgument;
    if (!counts_at(target.gpu->spec().model, location)) return kNotSupported;
    const Return result = read_count(node, target, kEccFields[error][counter], count);
    if (location != kLocationDeviceMemory) *count = 0;  // the scenario's errors are errors of the memory
    return result;
  });
}

Return nvmlDeviceGetRemappedRows(Device device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                                 unsigned* failed) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    const std::pair<unsigned, unsigned*> wanted[] = {{kFieldRemappedCorrectable, corrected},
                                                     {kFieldRemappedUncorrectable, uncorrected},
                                                     {kFieldRemapPending, pending},
                                                     {kFieldRemapFailed, failed}};
    for (const auto& [field, out] : wanted) {
      unsigned long long value = 0;
      if (!out) return kInvalidArgument;
      const Return result = read_count(node, target, field, &value);
      if (result != kSuccess) return result;
      *out = static_cast<unsigned>(value);
    }
    return kSuccess;
  });
}

Return nvmlDeviceGetRetiredPages(Device device, unsigned cause, unsigned* count, unsigned long long* addresses) {
  return retired_pages(__func__, device, cause, count, addresses, nullptr);
}

Return nvmlDeviceGetRetiredPages_v2(Device device, unsigned cause, unsigned* count, unsigned long long* addresses,
                                    unsigned long long* timestamps) {
  return retired_pages(__func__, device, cause, count, addresses, timestamps);
}

Return nvmlDeviceGetRetiredPagesPendingStatus(Device device, unsigned* pending) {
  return on_whole_gpu(__func__, device, [&](Node& node, Target& target) {
    unsigned long long value = 0;
    if (!pending) return kInvalidArgument;
    const Return result = read_count(node, target, kFieldRetiredPending, &value);
    if (result == kSuccess) *pending = static_cast<unsigned>(value);
    return result;
  });
}

}  // extern "C"

}  // namespace gpuledger::nvml
