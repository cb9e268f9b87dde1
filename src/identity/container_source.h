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
