#pragma once

#include <mutex>
#include <string>

#include "identity/health_cell.h"
#include "identity/pod_source.h"

namespace gpuledger::identity {

// A PodList in a file; read again when it changes. What the simulated node has instead of a kubelet.
class PodFile final : public PodSource {
 public:
  PodFile(std::string path, PodLabelList labels);
  std::shared_ptr<const PodView> view() const override;
  SourceHealth health() const override { return health_.get(); }

 private:
  const std::string path_;
  const PodLabelList labels_;
  mutable HealthCell health_{"pod-file"};
  mutable std::mutex mutex_;
  mutable std::string last_text_;
  mutable std::shared_ptr<const PodView> view_;
};

}  // namespace gpuledger::identity
