// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/pod_list_stream.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "identity/pod_store.h"

namespace gpuledger::identity {

using Json = nlohmann::json;

PodListStream::PodListStream(const PodLabelList& labels, std::string only_node)
    : labels_(labels),
      only_node_(std::move(only_node)),
      stream_(JsonStream::Shape::kItems, [this](std::string_view item) { add(item); }) {}

void PodListStream::add(std::string_view item) {
  const Json object = Json::parse(item, nullptr, false);
  auto pod = object.is_discarded() ? std::nullopt : parse_pod(object, labels_);
  if (!pod || list_.pods.size() >= PodStore::kMostPods) {
    ++left_out_;
    return;
  }
  if (only_node_.empty() || node_of(object) == only_node_) list_.pods.push_back(std::move(*pod));
}

Result<PodList> PodListStream::finish() {
  if (!stream_.complete()) return Error{Code::kMalformed, "a truncated PodList"};
  // The envelope: {"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[]}
  GL_TRY(around, parse_pod_list(stream_.envelope(), labels_));
  list_.resource_version = std::move(around.resource_version);
  return std::move(list_);
}

std::string node_of(const Json& pod) {
  if (!pod.is_object()) return "";
  const auto spec = pod.find("spec");
  if (spec == pod.end() || !spec->is_object()) return "";
  const auto node = spec->find("nodeName");
  return node == spec->end() || !node->is_string() ? "" : node->get<std::string>();
}

}  // namespace gpuledger::identity
