// SPDX-License-Identifier: Apache-2.0
#include "identity/pod_json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/quote.h"

namespace gpuledger::identity {
namespace {

using Json = nlohmann::json;
constexpr size_t kLongestPodName = 253;
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
    const std::string name = text_at(status, "name");
    // The container before the restart may still be ending.
    const Json& last = child(child(status, "lastState"), "terminated");
    for (const std::string& id : {text_at(last, "containerID"), text_at(status, "containerID")}) {
      add_container(name, id, pod);
    }
  }
}

// Limits: an extended resource must have one, and its request is equal to it.
void add_requests(const Json& containers, Pod& pod) {
  if (!containers.is_array()) return;
  for (const Json& container : containers) {
    const Json& limits = child(child(container, "resources"), "limits");
    if (!limits.is_object()) continue;
    for (const auto& [resource, count] : limits.items()) {
      // A quantity is a text; a whole number may be written as one.
      const std::string text = count.is_string() ? count.get<std::string>() : count.dump();
      add_request(text_at(container, "name"), resource, text, pod);
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
  return clean_text(text, kLongestPodName);
}

std::string bounded_id(std::string_view text) {
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
  return std::string(printable && text.size() <= kLongestPodName ? text : std::string_view());
}

std::string parse_manifest_hash(std::string_view annotation) {
  constexpr size_t kDigits = 32;
  const bool hex = annotation.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return std::string(hex && annotation.size() == kDigits ? annotation : std::string_view());
}

void add_request(std::string_view container, std::string_view resource, std::string_view count, Pod& pod) {
  constexpr size_t kMostRequests = 256;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), number);
  const bool whole = error == std::errc() && end == count.data() + count.size() && number > 0;
  if (!whole || resource.find('/') == std::string_view::npos || pod.requests.size() >= kMostRequests) return;
  GpuRequest request{bounded_name(container), bounded_name(resource), number};
  // Two of them would be one series twice.
  const bool known = std::any_of(pod.requests.begin(), pod.requests.end(), [&](const GpuRequest& other) {
    return other.container == request.container && other.resource == request.resource;
  });
  if (!known) pod.requests.push_back(std::move(request));
}

void add_container(std::string_view name, std::string_view id_with_scheme, Pod& pod) {
  constexpr size_t kMostContainers = 1000;
  const size_t scheme = id_with_scheme.find("://");
  if (scheme == std::string_view::npos || pod.containers.size() >= kMostContainers) return;
  std::string id = bounded_id(id_with_scheme.substr(scheme + 3));
  if (!id.empty()) pod.containers.push_back({std::move(id), bounded_name(name)});
}

std::optional<Pod> parse_pod(const Json& object, const PodLabelList& labels) {
  const Json& metadata = child(object, "metadata");
  Pod pod;
  pod.name_space = bounded_name(text_at(metadata, "namespace"));
  pod.name = bounded_name(text_at(metadata, "name"));
  pod.uid = bounded_id(text_at(metadata, "uid"));
  if (pod.uid.empty() || pod.name.empty()) return std::nullopt;
  const Json& annotations = child(metadata, "annotations");
  pod.manifest_hash = parse_manifest_hash(text_at(annotations, "kubernetes.io/config.hash"));
  pod.hami_devices = text_at(annotations, "hami.io/vgpu-devices-allocated").substr(0, kLongestAnnotation);
  for (const std::string& name : labels) {
    std::string value = text_at(child(metadata, "labels"), name.c_str());
    if (!value.empty()) pod.labels[name] = bounded_name(value);
  }
  const Json& spec = child(object, "spec");
  for (const char* kind : {"initContainers", "containers"}) add_requests(child(spec, kind), pod);
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
