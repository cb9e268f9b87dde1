// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/sample.h"

namespace gpuledger {

// --gpu-devices: the GPUs to watch, by index or UUID. An empty list means all of them.
inline bool names_gpu(const std::string& name, uint32_t index, std::string_view uuid) {
  return name == uuid || name == std::to_string(index);
}

inline bool is_asked_for(const std::vector<std::string>& names, uint32_t index, std::string_view uuid) {
  return names.empty() ||
         std::any_of(names.begin(), names.end(), [&](const auto& name) { return names_gpu(name, index, uuid); });
}

// One list may serve many nodes: a node with fewer GPUs watches those it has. Empty: no list, or no GPU at all.
inline std::optional<std::vector<std::string>> missing_gpus(const std::vector<std::string>& names,
                                                            const std::vector<DeviceSample>& devices) {
  if (names.empty() || devices.empty()) return std::nullopt;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    const auto is_it = [&](const DeviceSample& device) {
      return names_gpu(name, device.description->index, device.description->uuid.text);
    };
    if (std::none_of(devices.begin(), devices.end(), is_it)) missing.push_back(name);
  }
  return missing;
}

}  // namespace gpuledger
