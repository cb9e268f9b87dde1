// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "identity/pod_source.h"
#include "identity/pod_store.h"
#include "identity/sources/service_account.h"
#include "net/wire.h"
#include "task/health_cell.h"
#include "task/poll_thread.h"

namespace gpuledger::identity {

struct KubeletOptions {
  std::string host = default_host();
  uint16_t port = 10250;
  ServiceAccount account;    // its ca_file: the CA of the kubelet's certificate
  bool skip_verify = false;  // many kubelets have self-signed certificates
  PodLabelList labels;

  std::chrono::nanoseconds period = std::chrono::seconds(20);
  std::chrono::nanoseconds after_refusal =
      std::chrono::seconds(60);  // every refused request costs the API server a review
  std::chrono::nanoseconds answer_within = std::chrono::seconds(15);
  const task::Timer* timer = &task::system_timer();

  // This node's address from the downward API (NODE_IP, HOST_IP), else loopback.
  static std::string default_host();
};

// GET /pods of this node's kubelet. Needs `get` on nodes/pods; never nodes/proxy, which allows running commands in
// every pod.
class KubeletPods final : public PodSource {
 public:
  explicit KubeletPods(KubeletOptions options);

  std::shared_ptr<const PodView> view() const override { return store_.view(); }
  SourceHealth health() const override { return health_.get(); }
  void look_again() override { thread_.ask(); }

 private:
  task::PollThread::Next look(const std::stop_token& stop);
  task::PollThread::Next refused(unsigned status);

  const KubeletOptions options_;
  const net::Peer peer_;
  task::HealthCell health_{"kubelet"};
  PodStore store_;
  task::PollThread thread_;  // last: it uses the others
};

}  // namespace gpuledger::identity
