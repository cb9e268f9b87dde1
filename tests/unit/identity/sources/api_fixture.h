// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "identity/sources/apiserver.h"
#include "support/manual_timer.h"
#include "unit/http/temporary_directory.h"
#include "unit/identity/sources/pod_text.h"
#include "unit/net/fake_server.h"

namespace gpuledger::identity {

using net::chunk;
using net::chunked_head;
using net::http_answer;
using net::kLastChunk;

// An API server on loopback that is told by the test what to say, and a source that asks it and waits for little.
class ApiServerTest : public ::testing::Test {
 protected:
  using Connection = net::FakeServer::Connection;
  using Request = net::FakeServer::Request;

  static bool is_watch(const Request& request) { return request.target.find("watch=1") != std::string::npos; }
  static bool has(const Request& request, const std::string& part) {
    return request.target.find(part) != std::string::npos;
  }

  // number: which list or which watch it is, from 1 on.
  using Numbered = std::function<void(int number, const Request&, Connection&)>;
  void serve(Numbered list, Numbered watch) {
    server_ = net::FakeServer::on_loopback(
        [this, list = std::move(list), watch = std::move(watch)](const Request& request, Connection& connection) {
          if (is_watch(request)) {
            watch(++watches_, request, connection);
          } else {
            list(++lists_, request, connection);
          }
        },
        http::make_certificate("apiserver", authority_, "IP:127.0.0.1"));
  }
  // Always the same list.
  static Numbered lists(std::string version, std::vector<std::string> pods) {
    return
        [text = pod_list_text(version, pods)](int, const Request&, Connection& c) { c.send(http_answer(200, text)); };
  }
  // A watch on which nothing happens.
  static void idle(int, const Request&, Connection& connection) {
    connection.send(chunked_head());
    connection.wait_for_hangup();
  }

  ApiServerOptions options() {
    using namespace std::chrono_literals;
    ApiServerOptions options;
    options.host = "127.0.0.1";
    options.port = server_->port();
    options.account = {folder_.write("token", " secret-token\n"), folder_.write("ca.crt", authority_.cert)};
    options.node_name = "node-1";
    options.labels = {"team"};
    options.backoff = {20ms, 40ms, 2min};
    options.after_refusal = 1h;
    options.too_new_wait = 50ms;
    options.relist_gap = 0ms;
    options.short_watch = 0ms;
    options.publish_gap = 5ms;
    return options;
  }
  void start(ApiServerOptions options) {
    auto started = ApiServerPods::start(std::move(options));
    ASSERT_TRUE(started) << started.error().message;
    source_ = std::move(*started);
  }
  void start() { start(options()); }
  // Its waits take no time, and end when the test says so.
  void start_timed(ApiServerOptions options) {
    options.timer = &timer_;
    start(std::move(options));
  }

  bool knows(const std::string& pod) const {
    const auto view = source_->view();
    return view != nullptr && view->by_uid("uid-" + pod) != nullptr;
  }
  uint64_t errors(const std::string& code) const {
    const auto all = source_->health().errors;
    const auto found = all.find(code);
    return found == all.end() ? 0 : found->second;
  }
  // Requests of one kind, in order.
  std::vector<Request> requests(bool watches) const {
    std::vector<Request> all = server_->requests();
    std::erase_if(all, [&](const Request& each) { return is_watch(each) != watches; });
    return all;
  }

  ManualTimer timer_;
  http::TemporaryDirectory folder_;
  http::Identity authority_ = http::make_authority("the cluster");
  std::atomic<int> lists_{0};
  std::atomic<int> watches_{0};
  std::unique_ptr<net::FakeServer> server_;
  std::unique_ptr<ApiServerPods> source_;
};

}  // namespace gpuledger::identity
