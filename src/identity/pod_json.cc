// SPDX-License-Identifier: Apache-2.0
#include "identity/pod_json.h"

#include <nlohmann/json.hpp>

namespace gpuledger::identity {
namespace {

using Json = nlohmann::json;
constexpr size_t kLongestName = 253;
constexpr size_t kLongestAnnotation = 64 << 10;
constexpr int kDeepest = 64;

const Json& child(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto it = object.find(key);
  return it == object.end() ? nothing : *it;
}

std::string text_at(const Json& object, const char* key) {
  const Json& value = child(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

void add_containers(const Json& statuses, Pod& pod) {
  if (!statuses.is_array()) return;
  for (const Json& status : statuses) {
    const std::string name = bounded_name(text_at(status, "name"));
    // The container before the restart may still be ending.
    const Json& last = child(child(status, "lastState"), "terminated");
    for (const std::string& id : {text_at(last, "containerID"), text_at(status, "containerID")}) {
      std::string bare = bare_container_id(id);
      if (!bare.empty()) pod.containers.push_back({std::move(bare), name});
    }
  }
}

// Deep nesting would overflow the parser's stack; a pod is about ten levels deep.
Json parse_bounded(std::string_view text) {
  return Json::parse(
      text, [](int depth, Json::parse_event_t, Json&) { return depth <= kDeepest; }, false);
}

}  // namespace

std::string bounded_name(std::string_view text) {
  return std::string(text.substr(0, kLongestName));
}

std::string bare_container_id(std::string_view with_scheme) {
  const size_t scheme = with_scheme.find("://");
  return scheme == std::string_view::npos ? std::string() : bounded_name(with_scheme.substr(scheme + 3));
}

std::optional<Pod> parse_pod(const Json& object, const PodLabelList& labels) {
  const Json& metadata = child(object, "metadata");
  Pod pod;
  pod.name_space = bounded_name(text_at(metadata, "namespace"));
  pod.name = bounded_name(text_at(metadata, "name"));
  pod.uid = bounded_name(text_at(metadata, "uid"));
  if (pod.uid.empty() || pod.name.empty()) return std::nullopt;
  const Json& annotations = child(metadata, "annotations");
  pod.manifest_hash = bounded_name(text_at(annotations, "kubernetes.io/config.hash"));
  pod.hami_devices = text_at(annotations, "hami.io/vgpu-devices-allocated").substr(0, kLongestAnnotation);
  for (const std::string& name : labels) {
    std::string value = text_at(child(metadata, "labels"), name.c_str());
    if (!value.empty()) pod.labels[name] = bounded_name(value);
  }
  const Json& status = child(object, "status");
  const std::string phase = text_at(status, "phase");
  pod.finished = phase == "Succeeded" || phase == "Failed";
  for (const char* kind : {"initContainerStatuses", "ephemeralContainerStatuses", "containerStatuses"}) {
    add_containers(child(status, kind), pod);
  }
  return pod;
}

Result<PodList> parse_pod_list(std::string_view json, const PodLabelList& labels) {
  const Json list = parse_bounded(json);
  const Json& items = child(list, "items");
  // An empty list may be written as null.
  if (list.is_discarded() || !list.contains("items") || !(items.is_array() || items.is_null())) {
    return Error{Code::kMalformed, "not a PodList in JSON"};
  }
  PodList found;
  found.resource_version = text_at(child(list, "metadata"), "resourceVersion");
  for (const Json& item : items) {
    if (auto pod = parse_pod(item, labels)) found.pods.push_back(std::move(*pod));
  }
  return found;
}

}  // namespace gpuledger::identity
