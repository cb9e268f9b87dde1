// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "identity/sources/grpc_outcome.h"

namespace google::protobuf {
class MessageLite;
}

namespace gpuledger::identity {

// Calls without arguments to a server on a unix socket, in cleartext: the kubelet and the container runtimes offer
// nothing else. One thread at a time.
class GrpcClient {
 public:
  class Stream;

  GrpcClient(std::string socket, size_t largest_message);
  ~GrpcClient();

  const std::string& socket() const { return socket_; }
  // True: begins a new connection, because there is none or the socket was made anew. What a server could not do may be
  // there after its restart.
  bool refresh();

  // Waits for the answer, at most until the deadline, and not once stop is asked for. Every list we read has its items
  // in field 1: they are put into `item` one after the other, for the whole list at once would be several times the
  // size of what is kept of it. When the outcome is not ok, what `each` has seen may be a part.
  GrpcOutcome list(const std::string& method, google::protobuf::MessageLite& item, const std::function<void()>& each,
                   std::chrono::milliseconds deadline, std::stop_token stop);
  // A call with many answers, over a connection of its own. Ends by itself once stop is asked for.
  std::unique_ptr<Stream> open(const std::string& method, std::stop_token stop);

 private:
  struct Connection;

  const std::string socket_;
  const size_t largest_message_;
  std::shared_ptr<Connection> connection_;
};

class GrpcClient::Stream {
 public:
  enum class Got { kMessage, kNothingYet, kEnd };

  virtual ~Stream() = default;  // ends the call
  // kMessage: bytes holds it. kEnd: the outcome is known, and nothing will follow.
  virtual Got next(std::string& bytes, std::chrono::milliseconds wait) = 0;
  virtual const GrpcOutcome& outcome() const = 0;
};

}  // namespace gpuledger::identity
