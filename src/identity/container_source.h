// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "model/sample.h"

namespace gpuledger::identity {

// Names of containers outside Kubernetes, by full id. Immutable once made.
using ContainerNames = std::unordered_map<std::string, std::string>;

// Begins the reason of a source that fails while nothing needs it.
inline constexpr std::string_view kNotNeeded = "not needed now, because no process on a GPU runs in its containers; ";

// A docker or podman daemon, of root or of a user. Same threading rules as PodSource.
class ContainerSource {
 public:
  virtual ~ContainerSource() = default;
  virtual std::string_view runtime() const = 0;                    // "docker", "podman", as in CgroupHome::runtime
  virtual std::shared_ptr<const ContainerNames> view() const = 0;  // null until the first answer
  virtual std::string user() const { return "0"; }                 // daemon's uid; set after the first view
  virtual SourceHealth health() const = 0;
  virtual void look_again() {}
};

}  // namespace gpuledger::identity
