// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "identity/pod_source.h"
#include "identity/pod_store.h"
#include "identity/sources/grpc_client.h"
#include "net/backoff.h"
#include "task/health_cell.h"
#include "task/thread.h"
#include "task/timer.h"

namespace gpuledger::identity {

// The kubelet's own Pods service (on by default since 1.37). It pushes every change of a pod, before the API server has
// it and without any request to it.
class PodsApi final : public PodSource {
 public:
  struct Options {
    std::string socket = "/var/lib/kubelet/pods-api/pods-api.sock";
    PodLabelList labels;
    std::chrono::milliseconds publish_every = std::chrono::milliseconds(200);  // at most
    std::chrono::milliseconds first_list = std::chrono::seconds(30);           // timeout
    size_t largest_message = 8 << 20;                                          // one pod; etcd's limit is 1.5 MB
    net::Backoff::Pace pace;
    const task::Timer* timer = &task::system_timer();
  };

  explicit PodsApi(Options options);

  std::shared_ptr<const PodView> view() const override { return store_.view(); }
  SourceHealth health() const override { return health_.get(); }

 private:
  class Watch;
  void run(const std::stop_token& stop);
  std::string reason_of(const GrpcOutcome& outcome) const;

  const Options options_;
  task::HealthCell health_{"pods-api"};
  PodStore store_;
  net::Backoff backoff_;  // the thread's own
  task::Thread thread_;   // last: it uses the others
};

}  // namespace gpuledger::identity
