// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "identity/pod_view.h"
#include "model/sample.h"

namespace gpuledger::identity {

// One way to learn the pods of this node. Whoever fetches does so on a thread of its own, which the constructor
// starts and the destructor ends within a second; the three calls here never block and may come from any thread.
class PodSource {
 public:
  virtual ~PodSource() = default;
  // Null until the first complete list. Kept when the source fails later: names do not flap.
  virtual std::shared_ptr<const PodView> view() const = 0;
  virtual SourceHealth health() const = 0;
  // A source that stands for several tells of each that matters.
  virtual std::vector<SourceHealth> healths() const { return {health()}; }
  // A container nobody knows turned up: look now, at most once a second. Watches need not.
  virtual void look_again() {}
};

// Label names of --pod-labels. Everything else a pod is labelled with is dropped while reading.
using PodLabelList = std::vector<std::string>;

}  // namespace gpuledger::identity
