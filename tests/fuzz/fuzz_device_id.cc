// SPDX-License-Identifier: Apache-2.0
// What must hold of parse_device_id and parse_hami_allocation whatever a device plugin or an annotation says.

#include <cstdint>
#include <string>

#include "identity/device_id.h"
#include "invariant.h"

namespace {

using gpuledger::fuzz::all_in;
using gpuledger::fuzz::require;
using gpuledger::identity::DeviceRef;
using gpuledger::identity::is_gpu_resource;
using gpuledger::identity::parse_device_id;
using gpuledger::identity::parse_hami_allocation;

using Kind = DeviceRef::Kind;

void check_uuid(std::string_view uuid, std::string_view prefix) {
  require(uuid.size() == 40 && uuid.starts_with(prefix), "a uuid has its prefix");
  require(all_in(uuid.substr(4), "0123456789abcdef-"), "a uuid is lower hex");
}

void check_id(std::string_view id) {
  const DeviceRef ref = parse_device_id(id);
  require((ref.kind == Kind::kInvalid) == id.empty(), "invalid is empty");
  require(ref.uuid.empty() == (ref.kind != Kind::kUuid && ref.kind != Kind::kMigUuid), "a uuid where it belongs");
  if (ref.kind == Kind::kUuid) check_uuid(ref.uuid, "GPU-");
  if (ref.kind == Kind::kMigUuid) check_uuid(ref.uuid, "MIG-");
  require(ref.number.has_value() == (ref.kind == Kind::kMinor || ref.kind == Kind::kIndex),
          "a number where it belongs");
  require(!ref.compute_instance || ref.gpu_instance, "a compute instance is part of a GPU instance");
  require(!ref.placement || ref.kind == Kind::kMinor, "only DRA names places");
  const DeviceRef again = parse_device_id(std::string(id));
  require(again.kind == ref.kind && again.uuid == ref.uuid && again.replica == ref.replica, "read the same again");
  // A replica of what is known is the same GPU.
  if (ref.kind == Kind::kUuid && !ref.replica && id.find("::") == std::string_view::npos && id.size() < 200) {
    const DeviceRef replica = parse_device_id(std::string(id) + "::7");
    require(replica.uuid == ref.uuid, "a replica of another GPU");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  check_id(text);
  for (const auto& container : parse_hami_allocation(text)) {
    for (const std::string& uuid : container) check_uuid(uuid, uuid.substr(0, 4) == "MIG-" ? "MIG-" : "GPU-");
  }
  (void)is_gpu_resource(text);
  return 0;
}
