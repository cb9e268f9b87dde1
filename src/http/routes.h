// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "http/packed_snapshot.h"
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

struct Reply {
  unsigned status = 200;
  std::string content_type;
  std::shared_ptr<const std::string> body;  // for HEAD too: for its length
  std::vector<std::pair<std::string, std::string>> headers;
};

// A short plain text; a newline is added.
Reply text_reply(unsigned status, std::string text);

// Whether it is the liveness probe: a pod may be restarted if it has to wait.
bool asks_for_health(std::string_view target);

// All routes: they read only the finished snapshot (null: none yet). packed: its packed texts from earlier requests.
Reply route(const RequestFacts& request, const RouteSettings& settings, const std::shared_ptr<const Snapshot>& snapshot,
            PackedSnapshot& packed, Nanoseconds steady_now);

}  // namespace gpuledger::http
