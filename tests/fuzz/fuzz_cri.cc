// SPDX-License-Identifier: Apache-2.0
// What must hold of the pods that a container runtime lists. The input is two answers: sandboxes, then containers.

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <messages/cri.pb.h>
#include <messages/pod_resources.pb.h>

#include <algorithm>
#include <cstdint>

#include "identity/sources/cri_list.h"
#include "identity/sources/list_items.h"
#include "pod_invariant.h"

using namespace gpuledger;
using google::protobuf::io::ArrayInputStream;
using gpuledger::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const int first = static_cast<int>(std::min<size_t>(bytes[0], size - 1));
  const identity::PodLabelList labels = {"team"};
  identity::CriList list(labels);
  proto::cri::Sandbox sandbox;
  ArrayInputStream sandboxes(bytes + 1, first);
  (void)identity::parse_items(sandboxes, sandbox, [&] { list.add(sandbox); });
  proto::cri::Container container;
  ArrayInputStream containers(bytes + 1 + first, static_cast<int>(size) - 1 - first);
  (void)identity::parse_items(containers, container, [&] { list.add(container); });
  const auto pods = list.take();
  require(pods.size() <= size, "pods from nowhere");
  for (const identity::Pod& pod : pods) fuzz::check_pod(pod);

  // The kubelet's list of who was given what is read the same way.
  proto::pod_resources::PodGrants pod;
  ArrayInputStream grants(bytes, static_cast<int>(size));
  size_t seen = 0;
  (void)identity::parse_items(grants, pod, [&] { ++seen; });
  require(seen <= size, "items from nowhere");
  return 0;
}
