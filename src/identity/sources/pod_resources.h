// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "identity/allocation_source.h"
#include "identity/sources/grpc_client.h"
#include "net/backoff.h"
#include "task/health_cell.h"
#include "task/poll_thread.h"

namespace gpuledger::identity {

// The kubelet's pod-resources service: which container was given which device. Kubelets before 1.34 also list ended
// pods; the join with the pods drops those.
class PodResources final : public AllocationSource {
 public:
  struct Options {
    std::string socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
    std::chrono::milliseconds period = std::chrono::seconds(15);
    std::chrono::milliseconds deadline = std::chrono::seconds(5);
    std::chrono::milliseconds connect_within = std::chrono::seconds(5);
    size_t largest_answer = 16 << 20;         // the kubelet's own limit
    std::vector<std::string> more_resources;  // GPUs under the cluster's own names, "example.com/gpu"
    const task::Timer* timer = &task::system_timer();
  };

  explicit PodResources(Options options);

  std::shared_ptr<const GrantView> view() const override;
  SourceHealth health() const override { return health_.get(); }
  void look_again() override { thread_.ask(); }

 private:
  task::PollThread::Next look(const std::stop_token& stop);
  GrpcOutcome read_grants(std::vector<DeviceGrant>& grants, const std::stop_token& stop);
  void read_allocatable(const std::stop_token& stop);
  task::PollThread::Next failed(const GrpcOutcome& outcome);
  bool is_gpu(const std::string& resource) const;

  const Options options_;
  task::HealthCell health_{"pod-resources"};

  // The thread's own.
  GrpcClient client_;
  net::Backoff backoff_;
  bool only_v1alpha1_ = false;   // found by trying; reset with the connection
  bool no_allocatable_ = false;  // same
  int limited_in_a_row_ = 0;
  std::vector<std::string> allocatable_;

  mutable Mutex mutex_;
  std::shared_ptr<const GrantView> view_ GL_GUARDED_BY(mutex_);

  task::PollThread thread_;  // last: it uses the others
};

}  // namespace gpuledger::identity
