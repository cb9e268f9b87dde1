// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/http_url.h"
#include "net/credentials.h"
#include "net/interrupt.h"

namespace gpuledger::app {

// Where blocks go, and as whom.
struct ReceiverOptions {
  HttpUrl url;
  net::Credentials credentials;
  std::string ca_file;  // empty: the distribution's
  std::vector<std::pair<std::string, std::string>> headers;
  Nanoseconds answer_within = std::chrono::seconds(30);
};

struct PushOutcome {
  enum class Verdict {
    kTaken,
    kRefused,  // these samples, now and always
    kLater,    // nothing is said of the samples: try again
  };
  Verdict verdict = Verdict::kLater;
  std::string code;    // short, for a counter; empty: taken
  std::string reason;  // one line: the problem, and what to do
  std::optional<std::chrono::seconds> retry_after;
};

// One POST of a compressed WriteRequest.
PushOutcome post_block(const ReceiverOptions& receiver, std::string_view body, const net::Interrupt& interrupt);

}  // namespace gpuledger::app
