// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "identity/pod_source.h"

namespace gpuledger::identity {

// What the API server says went wrong: the body of a refusal, or an ERROR event in a watch that began well.
struct ApiStatus {
  unsigned code = 0;
  std::string reason;    // "Expired"
  std::string message;   // in quotes, one line, bounded
  bool too_new = false;  // our version is one that this server has not seen yet

  bool expired() const { return code == 410 || reason == "Expired" || reason == "Gone"; }
};
// Whatever can be found in it; a text that is no v1.Status gives an empty one.
ApiStatus parse_api_status(std::string_view json);

// One event of a watch on pods.
struct WatchEvent {
  enum class Kind { kChanged, kDeleted, kBookmark, kError, kUnknown };
  Kind kind = Kind::kUnknown;
  std::string version;     // where the next watch may go on; empty: not said
  std::optional<Pod> pod;  // kChanged, kDeleted
  std::string node;        // where it runs
  ApiStatus status;        // kError
};
// kUnknown: no such event, or a kind that nobody has told us of.
WatchEvent parse_watch_event(std::string_view json, const PodLabelList& labels);

}  // namespace gpuledger::identity
