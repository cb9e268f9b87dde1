// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "unit/identity/sources/wire_bytes.h"

namespace gpuledger::identity {

// A v1.Pod as Kubernetes would write it, by hand.
struct PodBytes {
  std::string name;
  std::string uid;
  std::string phase = "Running";
  std::vector<std::pair<std::string, std::string>> containers = {};  // name, id with its scheme
  std::string last_id = {};                                          // of the first container, before its restart
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> annotations = {};

  std::string bytes() const {
    std::string out = wire_field(1, metadata());
    // A spec with an environment in it: fields nobody here may trip over, or keep.
    out += wire_field(2, wire_field(2, wire_field(1, "main") + wire_field(7, wire_field(1, "TOKEN"))) +
                             wire_field(10, "node-1") + wire_number(12, 1));
    std::string status = wire_field(1, phase) + wire_field(6, "10.0.0.7");
    bool first = true;
    for (const auto& [container, id] : containers) {
      std::string one = wire_field(1, container);
      one += wire_field(2, wire_field(2, wire_field(1, wire_number(1, 1700000000))));  // running since
      if (first && !last_id.empty()) {
        one += wire_field(3, wire_field(3, wire_number(1, 137) + wire_field(3, "OOMKilled") + wire_field(7, last_id)));
      }
      one += wire_number(4, 1) + wire_number(5, 3) + wire_field(6, "image") + wire_field(8, id);
      status += wire_field(8, one);
      first = false;
    }
    return out + wire_field(3, status);
  }
  // All a kubelet says of a pod that is gone.
  std::string metadata_only() const { return wire_field(1, metadata()); }

 private:
  std::string metadata() const {
    return wire_field(1, name) + wire_field(3, "ml") + wire_field(5, uid) + wire_field(6, "4711") +
           wire_map(11, labels) + wire_map(12, annotations);
  }
};

}  // namespace gpuledger::identity
