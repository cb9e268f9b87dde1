// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/docker_container.h"

#include <nlohmann/json.hpp>

#include "identity/pod_json.h"

namespace gpuledger::identity {
namespace {

using Json = nlohmann::json;
constexpr size_t kLongestId = 128;

// A linked container is also listed by its aliases: "/web/db" beside "/db". Its own name has one slash.
std::string own_name(const Json& container) {
  const auto names = container.find("Names");
  if (names == container.end() || !names->is_array()) return "";
  for (const Json& each : *names) {
    if (!each.is_string()) continue;
    std::string name = each.get<std::string>();
    if (!name.empty() && name.front() == '/') name.erase(0, 1);
    if (!name.empty() && name.find('/') == std::string::npos) return bounded_name(name);
  }
  return "";
}

}  // namespace

std::optional<DockerContainer> parse_docker_container(std::string_view json) {
  const Json container = Json::parse(json, nullptr, false);
  if (!container.is_object()) return std::nullopt;
  const auto id = container.find("Id");
  if (id == container.end() || !id->is_string()) return std::nullopt;
  DockerContainer parsed{id->get<std::string>(), own_name(container)};
  if (parsed.id.empty() || parsed.id.size() > kLongestId) return std::nullopt;
  return parsed;
}

}  // namespace gpuledger::identity
