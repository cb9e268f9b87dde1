// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/server.h"
#include "support/eventually.h"
#include "support/manual_clock.h"
#include "unit/http/sample_snapshot.h"
#include "unit/http/temporary_directory.h"
#include "unit/http/test_client.h"

namespace gpuledger::http {

using std::chrono::milliseconds;

// A real server on loopback and what it serves.
class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    options_.listen_addresses = {"127.0.0.1:0"};
    options_.limits.web_config_poll = milliseconds(20);
    // Nobody is cut off but where a test says so.
    options_.limits.header_timeout = options_.limits.idle_timeout = options_.limits.write_timeout =
        std::chrono::hours(1);
    options_.on_web_config = [this](const Status& outcome) {
      std::lock_guard lock(outcomes_mutex_);
      outcomes_.push_back(outcome.ok() ? "ok" : outcome.error().message);
    };
  }

  void start() {
    cell_.store(sample_snapshot(clock_.now().steady));
    start_empty();
  }
  void start_empty() {
    auto server = Server::start(options_, cell_, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  std::string address(size_t index = 0) const { return server_->addresses().at(index); }

  // What on_web_config heard so far.
  std::vector<std::string> outcomes() {
    std::lock_guard lock(outcomes_mutex_);
    return outcomes_;
  }

  // A connection that has been answered once. Asks again, for where the limit on a request is short, a busy machine may
  // take longer from the connection to the request.
  std::unique_ptr<TestClient> served_client() {
    std::unique_ptr<TestClient> client;
    EXPECT_TRUE(eventually([&] {
      client = std::make_unique<TestClient>(address());
      return client->get("/healthz").status == 200;
    }));
    return client;
  }

  TemporaryDirectory directory_;
  ServerOptions options_;
  ManualClock clock_;
  SnapshotCell cell_;
  std::mutex outcomes_mutex_;
  std::vector<std::string> outcomes_;
  std::unique_ptr<Server> server_;
};

}  // namespace gpuledger::http
