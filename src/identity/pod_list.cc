#include "identity/pod_list.h"

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace gpuledger::identity {
namespace {

using Json = nlohmann::json;
constexpr size_t kLargestPodList = 64 << 20;

std::string text_at(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const Json& child(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto it = object.find(key);
  return it == object.end() ? nothing : *it;
}

void add_containers(const Json& statuses, const PodName& pod, PodView& view) {
  if (!statuses.is_array()) return;
  for (const Json& status : statuses) {
    const std::string id = text_at(status, "containerID");  // "containerd://<64 hex>"
    const size_t scheme = id.find("://");
    if (scheme == std::string::npos) continue;
    view.by_container_id[id.substr(scheme + 3)] = {pod, text_at(status, "name")};
  }
}

}  // namespace

Result<PodView> parse_pod_list(std::string_view json) {
  const Json list = Json::parse(json, nullptr, false);
  const Json& items = child(list, "items");
  if (list.is_discarded() || !items.is_array()) return Error{Code::kMalformed, "not a PodList in JSON"};
  PodView view;
  for (const Json& item : items) {
    const Json& metadata = child(item, "metadata");
    const PodName pod{text_at(metadata, "namespace"), text_at(metadata, "name"), text_at(metadata, "uid")};
    if (pod.uid.empty() || pod.pod.empty()) continue;
    view.by_uid[pod.uid] = pod;
    // A static pod's cgroup carries the hash of its manifest, not the mirror pod's uid.
    const std::string hash = text_at(child(metadata, "annotations"), "kubernetes.io/config.hash");
    if (!hash.empty()) view.by_uid[hash] = pod;
    const Json& status = child(item, "status");
    for (const char* kind : {"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"}) {
      add_containers(child(status, kind), pod, view);
    }
  }
  return view;
}

std::shared_ptr<const PodView> PodListFile::view() {
  const auto text = read_file(path_, kLargestPodList);
  if (!text.ok() || *text == last_text_) return view_;
  auto fresh = parse_pod_list(*text);
  if (fresh.ok()) view_ = std::make_shared<PodView>(std::move(*fresh));
  last_text_ = *text;
  return view_;
}

}  // namespace gpuledger::identity
