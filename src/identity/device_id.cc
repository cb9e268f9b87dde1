// SPDX-License-Identifier: Apache-2.0
#include "identity/device_id.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace gpuledger::identity {
namespace {

using Kind = DeviceRef::Kind;

constexpr size_t kLongestId = 256;
constexpr size_t kUuidLength = 36;
constexpr size_t kMostDevices = 4096;  // per annotation

std::optional<uint32_t> number_of(std::string_view text) {
  uint32_t number = 0;
  if (!is_number(text)) return {};
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return {};
  return number;
}

// Lower case, as NVML prints it.
bool is_uuid(std::string_view text) {
  if (text.size() != kUuidLength) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !hex) return false;
  }
  return true;
}

// Removes "<separator><digits>" from the end. A number out of range is ignored: the GPU is still valid.
void split_replica(std::string_view& id, std::string_view separator, std::optional<uint32_t>& replica) {
  const size_t at = id.rfind(separator);
  if (at == std::string_view::npos || !is_number(id.substr(at + separator.size()))) return;
  replica = number_of(id.substr(at + separator.size()));
  id = id.substr(0, at);
}

// "GPU-<uuid>", "MIG-<uuid>", "<uuid>", the first two with "-<slot>" of HAMi.
bool parse_uuid(std::string_view id, DeviceRef& ref) {
  std::string_view uuid = id;
  const bool mig = consume_prefix(uuid, "MIG-");
  const bool prefixed = mig || consume_prefix(uuid, "GPU-");
  if (prefixed && uuid.size() > kUuidLength) {
    std::string_view slot = uuid.substr(kUuidLength);
    if (!consume_prefix(slot, "-") || !is_number(slot)) return false;
    ref.replica = number_of(slot);
    ref.hami = true;
    uuid = uuid.substr(0, kUuidLength);
  }
  if (!is_uuid(uuid)) return false;
  ref.kind = mig ? Kind::kMigUuid : Kind::kUuid;
  ref.uuid = std::string(mig ? "MIG-" : "GPU-").append(uuid);
  return true;
}

// "MIG-GPU-<uuid>/<gpu instance>/<compute instance>".
bool parse_old_mig(std::string_view id, DeviceRef& ref) {
  if (!consume_prefix(id, "MIG-GPU-") || !is_uuid(id.substr(0, kUuidLength))) return false;
  std::string_view rest = id.substr(kUuidLength);
  if (!consume_prefix(rest, "/")) return false;
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return false;
  ref.gpu_instance = number_of(rest.substr(0, slash));
  ref.compute_instance = number_of(rest.substr(slash + 1));
  if (!ref.gpu_instance || !ref.compute_instance) return false;
  ref.kind = Kind::kUuid;
  ref.uuid = "GPU-" + std::string(id.substr(0, kUuidLength));
  return true;
}

// GKE: "nvidia<minor>[/gi<gpu instance>][/vgpu<replica>]".
bool parse_gke(std::string_view id, DeviceRef& ref) {
  if (!consume_prefix(id, "nvidia")) return false;
  split_replica(id, "/vgpu", ref.replica);
  const size_t slash = id.find('/');
  ref.number = number_of(id.substr(0, slash));
  if (!ref.number) return false;
  if (slash != std::string_view::npos) {
    std::string_view instance = id.substr(slash + 1);
    if (!consume_prefix(instance, "gi")) return false;
    ref.gpu_instance = number_of(instance);
    if (!ref.gpu_instance) return false;
  }
  ref.kind = Kind::kMinor;
  return true;
}

// "2g47gb-14-0" (profile, its id, start) or, older, "19-4-1" (profile id, start, size).
std::optional<MigPlacement> parse_placement(std::string_view text) {
  const size_t last = text.rfind('-');
  if (last == std::string_view::npos || last == 0) return {};
  const size_t middle = text.rfind('-', last - 1);
  if (middle == std::string_view::npos) return {};
  const std::string_view profile = text.substr(0, middle);
  const auto second = number_of(text.substr(middle + 1, last - middle - 1));
  const auto third = number_of(text.substr(last + 1));
  if (!second || !third) return {};
  if (const auto profile_id = number_of(profile)) return MigPlacement{{}, *profile_id, *second, *third};
  const bool shaped = !profile.empty() && profile.front() >= '1' && profile.front() <= '9' &&
                      profile.find('g') != std::string_view::npos &&
                      std::all_of(profile.begin(), profile.end(), [](char c) {
                        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '+';
                      });
  if (!shaped) return {};
  return MigPlacement{std::string(profile), *second, *third, {}};
}

// NVIDIA's DRA driver: "gpu-<minor>[-mig-<placement>]".
bool parse_dra(std::string_view id, DeviceRef& ref) {
  if (!consume_prefix(id, "gpu-")) return false;
  const size_t dash = id.find('-');
  ref.number = number_of(id.substr(0, dash));
  if (!ref.number) return false;
  if (dash != std::string_view::npos) {
    std::string_view placement = id.substr(dash);
    if (!consume_prefix(placement, "-mig-")) return false;
    ref.placement = parse_placement(placement);
    if (!ref.placement) return false;
  }
  ref.kind = Kind::kMinor;
  return true;
}

// "0", "gpu0"; for MIG devices "0:1", "mig0:1".
bool parse_index(std::string_view id, DeviceRef& ref) {
  const bool mig = consume_prefix(id, "mig");
  const bool gpu = !mig && consume_prefix(id, "gpu");
  const size_t colon = id.find(':');
  if ((mig && colon == std::string_view::npos) || (gpu && colon != std::string_view::npos)) return false;
  ref.number = number_of(id.substr(0, colon));
  if (colon != std::string_view::npos) {
    ref.mig_index = number_of(id.substr(colon + 1));
    if (!ref.mig_index) return false;
  }
  ref.kind = Kind::kIndex;
  return ref.number.has_value();
}

bool parse_word(std::string_view id, DeviceRef& ref) {
  if (id != "tegra" && id != "all") return false;
  ref.kind = id == "all" ? Kind::kAll : Kind::kTegra;
  return true;
}

// CDI: "<vendor>/<class>=<name>". Returns the name; nothing if the vendor is another.
std::optional<std::string_view> name_in_cdi(std::string_view id) {
  const size_t equals = id.find('=');
  if (equals == std::string_view::npos) return id;
  const size_t slash = id.substr(0, equals).find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view vendor = id.substr(0, slash);
  if (vendor != "nvidia.com" && !vendor.ends_with(".nvidia.com")) return {};
  std::string_view name = id.substr(equals + 1);
  if (id.substr(slash + 1, equals - slash - 1) != "claim") return name;
  // DRA: the claim's uid precedes the device's name.
  if (!is_uuid(name.substr(0, kUuidLength))) return {};
  name.remove_prefix(kUuidLength);
  if (!consume_prefix(name, "-")) return {};
  return name;
}

}  // namespace

DeviceRef parse_device_id(std::string_view id) {
  DeviceRef unknown;
  if (id.empty()) unknown.kind = Kind::kInvalid;
  if (id.empty() || id.size() > kLongestId) return unknown;
  const auto name = name_in_cdi(id);
  if (!name) return unknown;
  std::string_view device = *name;
  std::optional<uint32_t> replica;
  if (device.ends_with("::")) {
    device.remove_suffix(2);  // a replica without a number
  } else {
    split_replica(device, "::", replica);
  }
  for (const auto parse : {parse_uuid, parse_old_mig, parse_gke, parse_dra, parse_index, parse_word}) {
    DeviceRef ref;
    ref.replica = replica;
    if (parse(device, ref)) return ref;
  }
  return unknown;
}

bool is_gpu_resource(std::string_view resource_name) {
  if (!consume_prefix(resource_name, "nvidia.com/")) return false;
  constexpr std::string_view kShared = ".shared";
  if (resource_name.ends_with(kShared)) resource_name.remove_suffix(kShared.size());
  if (resource_name == "gpu") return true;
  return consume_prefix(resource_name, "mig-") && !resource_name.empty();
}

bool is_gpu_dra_driver(std::string_view driver_name) {
  return driver_name == "gpu.nvidia.com";
}

std::vector<std::vector<std::string>> parse_hami_allocation(std::string_view annotation) {
  std::vector<std::vector<std::string>> containers;
  size_t devices = 0;
  // ";" ends a container, ":" a device, "," its fields. Only the first field matters.
  while (!annotation.empty() && containers.size() < kMostDevices) {
    std::string_view rest = take_until(annotation, ';');
    std::vector<std::string>& uuids = containers.emplace_back();
    while (!rest.empty() && devices < kMostDevices) {
      const std::string_view device = take_until(rest, ':');
      // With dynamic MIG the template and position follow in brackets.
      const DeviceRef ref = parse_device_id(device.substr(0, device.find_first_of(",[")));
      if (ref.kind != Kind::kUuid && ref.kind != Kind::kMigUuid) continue;
      uuids.push_back(ref.uuid);
      ++devices;
    }
  }
  return containers;
}

}  // namespace gpuledger::identity
