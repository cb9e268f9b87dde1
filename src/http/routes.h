// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/packed_snapshot.h"
#include "http/reply.h"
#include "model/snapshot.h"

namespace gpuledger::http {

struct RouteSettings {
  std::string metrics_path = "/metrics";
  Nanoseconds stale_after{0};  // how old a snapshot may be for /-/ready; 0: any age
};

// The parts of a request that decide the answer. Empty: not sent.
struct RequestFacts {
  std::string_view method;
  std::string_view target;
  std::string_view accept;
  std::string_view accept_encoding;
};

// The path of "/metrics?x=1" and of the proxy form, "http://host/metrics".
std::string_view path_of(std::string_view target);

// Whether it asks for liveness or readiness: a pod may be restarted, or its rollout stop, if it is not answered.
bool is_probe(std::string_view target);

// All routes: they read only the finished snapshot (null: none yet). packed: its packed texts from earlier requests.
Reply route(const RequestFacts& request, const RouteSettings& settings, const std::shared_ptr<const Snapshot>& snapshot,
            PackedSnapshot& packed, Nanoseconds steady_now);

}  // namespace gpuledger::http
