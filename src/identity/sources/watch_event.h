// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "identity/pod_source.h"

namespace gpuledger::identity {

// An error from the API server: the body of a refusal, or an ERROR event in a watch.
struct ApiStatus {
  unsigned code = 0;
  std::string reason;    // "Expired"
  std::string message;   // in quotes, one line, bounded
  bool too_new = false;  // the server has not seen our version yet

  bool expired() const { return code == 410 || reason == "Expired" || reason == "Gone"; }
};
// All fields that are found; empty if the text is not a v1.Status.
ApiStatus parse_api_status(std::string_view json);

// One event of a watch on pods.
struct WatchEvent {
  enum class Kind { kChanged, kDeleted, kBookmark, kError, kUnknown };
  Kind kind = Kind::kUnknown;
  std::string version;     // where a watch may resume; empty: not given
  std::optional<Pod> pod;  // kChanged, kDeleted
  std::string node;        // of the pod
  ApiStatus status;        // kError
};
// kUnknown: not an event, or one of an unknown type.
WatchEvent parse_watch_event(std::string_view json, const PodLabelList& labels);

}  // namespace gpuledger::identity
