// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/sim_node_files.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "identity/pod_json.h"

namespace gpuledger::app {
namespace {

using Json = nlohmann::json;
using identity::ContainerNames;
using identity::GrantView;
using identity::Pod;
using identity::PodLabelList;
using identity::PodView;
constexpr size_t kLargestFile = 64 << 20;

std::string text_at(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const Json& list_at(const Json& object, const char* key) {
  static const Json nothing = Json::array();
  const auto it = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && it != object.end() && it->is_array() ? *it : nothing;
}

Result<std::shared_ptr<const PodView>> parse_pods(std::string_view text, const PodLabelList& labels) {
  GL_TRY(list, identity::parse_pod_list(text, labels));
  std::vector<std::shared_ptr<const Pod>> pods;
  for (Pod& pod : list.pods) pods.push_back(std::make_shared<const Pod>(std::move(pod)));
  return std::make_shared<const PodView>(std::move(pods));
}

Result<std::shared_ptr<const GrantView>> parse_grants(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Error{Code::kMalformed, "not an answer of pod-resources in JSON"};
  auto view = std::make_shared<GrantView>();
  for (const Json& pod : list_at(json, "podResources")) {
    for (const Json& container : list_at(pod, "containers")) {
      for (const Json& devices : list_at(container, "devices")) {
        for (const Json& id : list_at(devices, "deviceIds")) {
          if (!id.is_string()) continue;
          view->grants.push_back({.name_space = text_at(pod, "namespace"),
                                  .pod = text_at(pod, "name"),
                                  .container = text_at(container, "name"),
                                  .resource = text_at(devices, "resourceName"),
                                  .device_id = id.get<std::string>()});
        }
      }
    }
  }
  for (const Json& id : list_at(json, "allocatable")) {
    if (id.is_string()) view->allocatable.push_back(id.get<std::string>());
  }
  return std::shared_ptr<const GrantView>(std::move(view));
}

Result<std::shared_ptr<const ContainerNames>> parse_containers(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return Error{Code::kMalformed, "not a list of containers in JSON"};
  auto names = std::make_shared<ContainerNames>();
  for (const Json& container : json) {
    const Json& given = list_at(container, "Names");
    if (given.empty() || !given[0].is_string()) continue;
    std::string name = given[0].get<std::string>();
    if (name.starts_with('/')) name.erase(0, 1);
    (*names)[text_at(container, "Id")] = identity::bounded_name(name);
  }
  return std::shared_ptr<const ContainerNames>(std::move(names));
}

}  // namespace

template <typename View>
std::shared_ptr<const View> ViewFile<View>::view() const {
  const MutexLock lock(mutex_);
  // A file that was not replaced is not read again: on a crowded node it has megabytes.
  struct stat file {};
  const bool there = ::stat(path_.c_str(), &file) == 0;
  const Stamp stamp{file.st_ino, file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec};
  if (view_ && there && stamp == last_) return view_;
  const auto text = read_file(path_, kLargestFile);
  if (!text.ok()) {
    health_.fails(code_name(text.error().code), text.error().message);
    return view_;
  }
  last_ = stamp;
  auto fresh = parse_(*text);
  if (!fresh.ok()) {
    health_.fails(code_name(fresh.error().code), path_ + ": " + fresh.error().message);
    return view_;
  }
  view_ = std::move(*fresh);
  health_.works();
  return view_;
}

PodFile::PodFile(std::string path, PodLabelList labels)
    : file_("kubelet", std::move(path),
            [labels = std::move(labels)](std::string_view text) { return parse_pods(text, labels); }) {}

AllocationFile::AllocationFile(std::string path) : file_("pod-resources", std::move(path), parse_grants) {}

ContainerFile::ContainerFile(std::string path) : file_("docker", std::move(path), parse_containers) {}

}  // namespace gpuledger::app
