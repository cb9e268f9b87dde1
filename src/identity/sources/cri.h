// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "identity/pod_source.h"
#include "identity/pod_store.h"
#include "identity/sources/grpc_client.h"
#include "net/backoff.h"
#include "task/health_cell.h"
#include "task/poll_thread.h"

namespace gpuledger::identity {

// The container runtime's own list (CRI, runtime.v1). Its socket gives root on the node, so this source must be chosen
// explicitly.
class CriPods final : public PodSource {
 public:
  struct Options {
    std::string socket;  // empty: the first usual one that exists and answers
    PodLabelList labels;
    std::chrono::milliseconds period = std::chrono::seconds(10);
    std::chrono::milliseconds deadline = std::chrono::seconds(5);
    std::vector<std::string> usual_sockets = {
        "/run/containerd/containerd.sock", "/run/crio/crio.sock",      "/run/k3s/containerd/containerd.sock",
        "/var/run/cri-dockerd.sock",       "/run/k0s/containerd.sock", "/var/snap/microk8s/common/run/containerd.sock"};
    const task::Timer* timer = &task::system_timer();
  };

  explicit CriPods(Options options);

  std::shared_ptr<const PodView> view() const override { return store_.view(); }
  SourceHealth health() const override { return health_.get(); }
  void look_again() override { thread_.ask(); }

 private:
  task::PollThread::Next look(const std::stop_token& stop);
  GrpcOutcome read_pods(std::vector<Pod>& pods, const std::stop_token& stop);
  void choose_socket();

  const Options options_;
  task::HealthCell health_{"cri"};
  PodStore store_;

  // The thread's own.
  std::unique_ptr<GrpcClient> client_;
  size_t next_socket_ = 0;
  net::Backoff backoff_;

  task::PollThread thread_;  // last: it uses the others
};

}  // namespace gpuledger::identity
