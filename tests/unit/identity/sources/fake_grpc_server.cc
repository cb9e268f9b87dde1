// SPDX-License-Identifier: Apache-2.0
#include "unit/identity/sources/fake_grpc_server.h"

#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <stdlib.h>

#include <cstdio>
#include <deque>
#include <filesystem>

namespace gpuledger::identity {

class FakeGrpcServer::Call final : public grpc::ServerGenericBidiReactor {
 public:
  Call(FakeGrpcServer& server, std::string method) : server_(server), method_(std::move(method)) {}

  void begin(std::shared_ptr<Call> self) {
    self_ = std::move(self);
    StartRead(&request_);
  }

  void OnReadDone(bool /*good*/) override {
    Handler handler;
    {
      const std::lock_guard lock(server_.mutex_);
      const auto known = server_.handlers_.find(method_);
      if (known != server_.handlers_.end()) handler = known->second;
    }
    const Reply reply = handler ? handler() : Reply{{}, grpc::StatusCode::UNIMPLEMENTED, "unknown service", false};
    {
      const std::lock_guard lock(mutex_);
      waiting_.insert(waiting_.end(), reply.messages.begin(), reply.messages.end());
      open_ = reply.open;
      status_ = grpc::Status(static_cast<grpc::StatusCode>(reply.status), reply.error);
    }
    {
      const std::lock_guard lock(server_.mutex_);
      ++server_.counts_[method_];  // from now on a test may send more
    }
    go_on();
  }
  void OnWriteDone(bool good) override {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      if (!good) open_ = false;
    }
    go_on();
  }
  void OnCancel() override { end(grpc::StatusCode::CANCELLED, {}); }
  void OnDone() override { const auto self = std::move(self_); }

  void send(const std::string& bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (open_) waiting_.push_back(bytes);
    }
    go_on();
  }
  void end(int status, const std::string& error) {
    {
      const std::lock_guard lock(mutex_);
      open_ = false;
      status_ = grpc::Status(static_cast<grpc::StatusCode>(status), error);
    }
    go_on();
  }
  bool open() const {
    const std::lock_guard lock(mutex_);
    return open_;
  }

 private:
  void go_on() {
    bool write = false;
    {
      const std::lock_guard lock(mutex_);
      if (writing_ || finished_) return;
      if (!waiting_.empty()) {
        const grpc::Slice slice(waiting_.front());
        buffer_ = grpc::ByteBuffer(&slice, 1);
        waiting_.pop_front();
        write = writing_ = true;
      } else if (open_) {
        return;
      } else {
        finished_ = true;
      }
    }
    if (write) {
      StartWrite(&buffer_);
    } else {
      Finish(status_);
    }
  }

  FakeGrpcServer& server_;
  const std::string method_;
  std::shared_ptr<Call> self_;  // until gRPC is done with it
  grpc::ByteBuffer request_;
  grpc::ByteBuffer buffer_;
  mutable std::mutex mutex_;
  std::deque<std::string> waiting_;
  grpc::Status status_;
  bool open_ = true;
  bool writing_ = false;
  bool finished_ = false;
};

class FakeGrpcServer::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(FakeGrpcServer& server) : server_(server) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    auto call = std::make_shared<Call>(server_, context->method());
    {
      const std::lock_guard lock(server_.mutex_);
      server_.authority_ = context->host();
      std::erase_if(server_.calls_, [](const auto& old) { return old.expired(); });
      server_.calls_.push_back(call);
    }
    call->begin(call);
    return call.get();
  }

 private:
  FakeGrpcServer& server_;
};

struct FakeGrpcServer::Running {
  Service service;
  std::unique_ptr<grpc::Server> server;
};

FakeGrpcServer::FakeGrpcServer() {
  grpc_init();  // never shut down: that may take ten seconds
  char path[] = "/tmp/gpu-ledger-grpc-XXXXXX";
  if (::mkdtemp(path) == nullptr) std::abort();
  folder_ = path;
  socket_ = folder_ + "/a.sock";
}

FakeGrpcServer::~FakeGrpcServer() {
  stop();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void FakeGrpcServer::start() {
  running_.reset(new Running{Service(*this), nullptr});
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterCallbackGenericService(&running_->service);
  running_->server = builder.BuildAndStart();
  if (!running_->server) std::abort();
}

void FakeGrpcServer::stop() {
  if (!running_) return;
  running_->server->Shutdown(std::chrono::system_clock::now());
  running_.reset();
  std::remove(socket_.c_str());
}

void FakeGrpcServer::answer(const std::string& method, Handler handler) {
  const std::lock_guard lock(mutex_);
  handlers_[method] = std::move(handler);
}

void FakeGrpcServer::answer(const std::string& method, Reply reply) {
  answer(method, [reply = std::move(reply)] { return reply; });
}

int FakeGrpcServer::calls(const std::string& method) const {
  const std::lock_guard lock(mutex_);
  const auto known = counts_.find(method);
  return known == counts_.end() ? 0 : known->second;
}

std::string FakeGrpcServer::last_authority() const {
  const std::lock_guard lock(mutex_);
  return authority_;
}

std::vector<std::shared_ptr<FakeGrpcServer::Call>> FakeGrpcServer::open_calls() const {
  std::vector<std::shared_ptr<Call>> found;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : calls_) {
    auto call = weak.lock();
    if (call && call->open()) found.push_back(std::move(call));
  }
  return found;
}

void FakeGrpcServer::send(const std::string& bytes) {
  for (const auto& call : open_calls()) call->send(bytes);
}

void FakeGrpcServer::end_open_calls(int status, const std::string& error) {
  for (const auto& call : open_calls()) call->end(status, error);
}

}  // namespace gpuledger::identity
