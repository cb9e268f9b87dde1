// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "identity/pod_source.h"
#include "identity/pod_store.h"
#include "identity/sources/service_account.h"
#include "net/backoff.h"
#include "task/health_cell.h"
#include "task/thread.h"
#include "task/timer.h"

namespace gpuledger::identity {

struct ApiServerOptions {
  using Duration = std::chrono::nanoseconds;

  std::string host;  // IPv6 with or without brackets
  uint16_t port = 443;
  ServiceAccount account;
  std::string node_name;  // only this node's pods are requested
  PodLabelList labels;

  // Maximum; each node draws its own, so that a rollout does not list all nodes at once.
  Duration start_delay = std::chrono::seconds(0);
  net::Backoff::Pace backoff;
  Duration after_refusal = std::chrono::seconds(60);      // 403: an admin must change the rights first
  Duration too_new_wait = std::chrono::seconds(1);        // the server has not seen that version yet
  Duration relist_gap = std::chrono::seconds(10);         // two lists within: back off
  Duration short_watch = std::chrono::seconds(1);         // an empty watch shorter than this: back off
  Duration publish_gap = std::chrono::milliseconds(200);  // a burst of events makes one view
  Duration watch_shortest = std::chrono::seconds(300);
  Duration watch_longest = std::chrono::seconds(600);
  Duration watch_grace = std::chrono::seconds(30);  // after it the connection is closed
  Duration answer_within = std::chrono::seconds(30);
  Duration list_within = std::chrono::seconds(60);
  const task::Timer* timer = &task::system_timer();
};

// KUBERNETES_SERVICE_HOST and _PORT, set in every pod. An error outside a cluster.
Result<ApiServerOptions> read_cluster_environment();

// List and watch of this node's pods. Needs `list` and `watch` on pods.
class ApiServerPods final : public PodSource {
 public:
  // Fails without a node name: it would request every pod of the cluster.
  static Result<std::unique_ptr<ApiServerPods>> start(ApiServerOptions options);

  std::shared_ptr<const PodView> view() const override { return store_.view(); }
  SourceHealth health() const override { return health_.get(); }

 private:
  class Session;
  explicit ApiServerPods(ApiServerOptions options);

  const ApiServerOptions options_;
  task::HealthCell health_{"apiserver"};
  PodStore store_;
  task::Thread thread_;  // last: it uses the others
};

}  // namespace gpuledger::identity
