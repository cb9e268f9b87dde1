// SPDX-License-Identifier: Apache-2.0
// What must hold of a pod in protobuf, alone and in an event of the kubelet's Pods API.

#include <messages/pods_api.pb.h>

#include <cstdint>
#include <string>

#include "identity/sources/pod_proto.h"
#include "pod_invariant.h"

using gpuledger::fuzz::check_pod;
using gpuledger::identity::parse_pod_proto;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  if (const auto pod = parse_pod_proto(text, {"team"})) check_pod(*pod);
  gpuledger::proto::pods_api::Event event;
  if (!event.ParseFromString(text)) return 0;
  if (const auto pod = parse_pod_proto(event.pod(), {"team"})) check_pod(*pod);
  return 0;
}
