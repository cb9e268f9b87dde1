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

// Calls without arguments to a server on a unix socket, in cleartext: kubelet and container runtimes offer nothing
// else. For one thread at a time.
class GrpcClient {
 public:
  class Stream;

  // connect_within: the server's handshake included.
  GrpcClient(std::string socket, size_t largest_message,
             std::chrono::milliseconds connect_within = std::chrono::seconds(5));
  ~GrpcClient();

  const std::string& socket() const { return socket_; }
  // True: a new connection was begun, because there is none or the socket was recreated. A restarted server may have
  // new features.
  bool refresh();

  // Waits for the answer until the deadline or until stop is requested. Every list we read has its items in field 1.
  // They are parsed into `item` one by one: the whole list would need several times the memory of what is kept. If the
  // outcome is not ok, `each` may have seen only a part.
  GrpcOutcome list(const std::string& method, google::protobuf::MessageLite& item, const std::function<void()>& each,
                   std::chrono::milliseconds deadline, std::stop_token stop);
  // A call with many answers, over its own connection. Ends once stop is requested.
  std::unique_ptr<Stream> open(const std::string& method, std::stop_token stop);

 private:
  struct Connection;

  const std::string socket_;
  const size_t largest_message_;
  const std::chrono::milliseconds connect_within_;
  std::shared_ptr<Connection> connection_;
};

class GrpcClient::Stream {
 public:
  enum class Got { kMessage, kNothingYet, kEnd };

  virtual ~Stream() = default;  // ends the call
  // kMessage: it is in bytes. kEnd: the outcome is known and nothing follows.
  virtual Got next(std::string& bytes, std::chrono::milliseconds wait) = 0;
  virtual const GrpcOutcome& outcome() const = 0;
};

}  // namespace gpuledger::identity
