// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "support/eventually.h"

namespace gpuledger::identity {

// grpc::StatusCode
enum GrpcStatus { kUnknown = 2, kResourceExhausted = 8, kFailedPrecondition = 9, kUnavailable = 14 };

// A real gRPC server on a unix socket in a folder of its own. It knows nothing of messages: bytes in, bytes out.
class FakeGrpcServer {
 public:
  struct Reply {
    std::vector<std::string> messages;
    int status = 0;  // grpc::StatusCode
    std::string error;
    bool open = false;  // go on after the messages: a watch, or a server that never answers
  };
  using Handler = std::function<Reply()>;

  FakeGrpcServer();
  ~FakeGrpcServer();
  FakeGrpcServer(const FakeGrpcServer&) = delete;
  FakeGrpcServer& operator=(const FakeGrpcServer&) = delete;

  const std::string& socket() const { return socket_; }
  void start();
  void stop();  // as a kubelet that is killed: calls break off, the socket goes

  // Methods that were not given are unimplemented.
  void answer(const std::string& method, Handler handler);
  void answer(const std::string& method, Reply reply);
  int calls(const std::string& method) const;
  std::string last_authority() const;

  // To every call that is open.
  void send(const std::string& bytes);
  void end_open_calls(int status, const std::string& error = {});

  class Call;

 private:
  class Service;
  struct Running;
  std::vector<std::shared_ptr<Call>> open_calls() const;

  std::string folder_;
  std::string socket_;
  mutable std::mutex mutex_;
  std::map<std::string, Handler> handlers_;
  std::map<std::string, int> counts_;
  std::string authority_;
  std::vector<std::weak_ptr<Call>> calls_;
  std::unique_ptr<Running> running_;
};

}  // namespace gpuledger::identity
