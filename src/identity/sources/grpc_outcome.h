// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuledger::identity {

// How a call ended. Codes are gRPC's names in lower case, and finer ones where gRPC has one word for several things:
// "no_socket" and "no_permission" (unavailable), "too_large" and "rate_limited" (resource_exhausted); "malformed" is an
// answer that cannot be read.
struct GrpcOutcome {
  std::string code = "ok";
  std::string message;  // the server's or the system's words: one line, bounded, printable

  bool ok() const { return code == "ok"; }
};

// From a status of gRPC. One that says no more than that the server cannot be reached is looked into: this connects to
// the socket once more.
GrpcOutcome read_outcome(int status, const std::string& message, const std::string& socket);

// What is wrong and what to do about it, for failures that are the same for every server.
std::string failure_reason(const GrpcOutcome& outcome, const std::string& socket);

}  // namespace gpuledger::identity
