// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "identity/pod_view.h"
#include "model/sample.h"

namespace gpuledger::identity {

// One source of this node's pods. It fetches on its own thread, which the constructor starts and the destructor ends
// within a second. The calls here never block and may come from any thread.
class PodSource {
 public:
  virtual ~PodSource() = default;
  // Null until the first complete list. Kept if the source fails later: names do not flap.
  virtual std::shared_ptr<const PodView> view() const = 0;
  virtual SourceHealth health() const = 0;
  // A source that combines several reports each that matters.
  virtual std::vector<SourceHealth> healths() const { return {health()}; }
  // An unknown container appeared: list now, at most once a second. Watches need not.
  virtual void look_again() {}
};

// Label names of --pod-labels. All other labels of a pod are dropped while reading.
using PodLabelList = std::vector<std::string>;

}  // namespace gpuledger::identity
