// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/wire.h"

namespace gpuledger::net {

struct HttpRequest {
  using Duration = Interrupt::Clock::duration;

  std::string target;                                        // path and query
  std::vector<std::pair<std::string, std::string>> headers;  // beside Host, User-Agent and Connection
  bool accept_gzip = false;

  Duration connect_within = std::chrono::seconds(10);  // TLS included
  Duration head_within = std::chrono::seconds(30);
  Duration longest_silence = std::chrono::seconds(30);  // between two parts of the body
  Duration whole_within = std::chrono::seconds(60);
  Duration pause{0};                 // 0: no empty pieces
  uint64_t largest_body = 64 << 20;  // unpacked
};

struct HttpReply {
  unsigned status = 0;
  std::string retry_after;
  std::optional<uint32_t> peer_user;  // of a unix socket: the server's uid
  std::string body;                   // of a status other than 200: its first bytes, for the reason
};

// Gets the body of a 200 as it comes, and an empty piece after the head and whenever nothing came for the request's
// pause. False: stop, the connection is closed.
using BodySink = std::function<bool(std::string_view)>;

// One request on its own connection. Blocks, but only as long as the request allows, and ends at once when the
// interrupt is raised. Follows no redirect, so a token never goes to another server, and uses no proxy: the peers are
// on this node or in its cluster. An error means that there was no complete HTTP answer.
class HttpClient {
 public:
  HttpClient(Peer peer, std::string user_agent, const Interrupt& interrupt)
      : peer_(std::move(peer)), user_agent_(std::move(user_agent)), interrupt_(interrupt) {}

  Result<HttpReply> get(const HttpRequest& request, const BodySink& sink) const;
  // The reply has the whole body of a 200.
  Result<HttpReply> get(const HttpRequest& request) const;
  // Sends the body, whose type is among the request's headers. Only the status of the answer counts: its body is read
  // and dropped, but for the first bytes of an error, and may be cut.
  Result<HttpReply> post(const HttpRequest& request, std::string_view body) const;

  const Peer& peer() const { return peer_; }

 private:
  // Without a body it is a GET, without a sink the body of the answer is dropped.
  Result<HttpReply> exchange(const HttpRequest& request, std::optional<std::string_view> body,
                             const BodySink& sink) const;

  const Peer peer_;
  const std::string user_agent_;
  const Interrupt& interrupt_;
};

}  // namespace gpuledger::net
