// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuledger::identity {

// How a call ended. Codes are gRPC's names in lower case, and finer ones where one gRPC code has several causes:
// "no_socket" and "no_permission" (unavailable), "too_large" and "rate_limited" (resource_exhausted); "malformed" is an
// unreadable answer, "grpc_not_started" says that gRPC cannot have its threads.
struct GrpcOutcome {
  std::string code = "ok";
  std::string message;  // the server's or system's message: one line, bounded, printable

  bool ok() const { return code == "ok"; }
};

// From a gRPC status. If it only says that the server cannot be reached, this connects to the socket once more to find
// the cause.
GrpcOutcome read_outcome(int status, const std::string& message, const std::string& socket);

// The problem and the remedy, for failures common to all servers.
std::string failure_reason(const GrpcOutcome& outcome, const std::string& socket);

}  // namespace gpuledger::identity
