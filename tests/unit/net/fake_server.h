// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/eventually.h"
#include "unit/http/certificates.h"

struct ssl_st;
struct ssl_ctx_st;

namespace gpuledger::net {

// A server that says exactly the bytes a test tells it to, on loopback or on a unix socket. One request per connection.
class FakeServer {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::map<std::string, std::string> headers;  // names in small letters
    std::string body;
  };

  class Connection {
   public:
    Connection(int fd, ssl_st* tls, const std::atomic<bool>& stopping) : fd_(fd), tls_(tls), stopping_(stopping) {}
    // False: the client has hung up.
    bool send(const std::string& bytes);
    // Keeps quiet until the client hangs up, the server ends or the time is over. True: the client did.
    bool wait_for_hangup(std::chrono::milliseconds longest = std::chrono::hours(1));
    std::string read_head();
    std::string read_bytes(size_t count);

   private:
    const int fd_;
    ssl_st* const tls_;
    const std::atomic<bool>& stopping_;
  };
  // Runs on a thread of its own for every request; the connection is closed when it returns.
  using Handler = std::function<void(const Request&, Connection&)>;

  static std::unique_ptr<FakeServer> on_loopback(Handler handler, std::optional<http::Identity> tls = std::nullopt,
                                                 int newest_tls = 0);
  static std::unique_ptr<FakeServer> on_unix(const std::string& path, Handler handler);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  uint16_t port() const { return port_; }
  std::vector<Request> requests() const;

 private:
  FakeServer(int fd, Handler handler, ssl_ctx_st* context);
  void accept_all();
  void serve(int fd);

  const int fd_;
  const Handler handler_;
  ssl_ctx_st* const context_;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::set<int> open_;  // connections
  std::vector<std::thread> connections_;
  std::thread thread_;
};

// Whole answers and parts of one.
std::string http_answer(int status, const std::string& body, const std::string& headers = "");
std::string chunked_head(const std::string& headers = "");
std::string chunk(const std::string& bytes);
inline const char* const kLastChunk = "0\r\n\r\n";
std::string gzipped(const std::string& plain);

using gpuledger::eventually;

}  // namespace gpuledger::net
