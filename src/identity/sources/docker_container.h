// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpuledger::identity {

struct DockerContainer {
  std::string id;
  std::string name;  // empty: it has none of its own
};

// One object of the list that docker's API and podman's give. None: not such an object.
std::optional<DockerContainer> parse_docker_container(std::string_view json);

}  // namespace gpuledger::identity
