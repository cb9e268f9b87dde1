// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "crowded_node.h"
#include "http/password_check.h"
#include "http/server.h"
#include "support/manual_clock.h"
#include "unit/http/bcrypt_hash.h"
#include "unit/http/sample_snapshot.h"
#include "unit/http/temporary_directory.h"
#include "unit/http/test_client.h"

// What a password costs, in hashes: how fast the machine makes one does not matter.
namespace gpuledger::bench {
namespace {

using http::bcrypt_hash;
using http::PasswordCheck;
using http::TestClient;

constexpr int kCost = 8;  // 10 ms

// CPU seconds of the cheapest of some checks.
double least_cost(PasswordCheck& check, const http::Credentials& credentials, bool right) {
  double least = 1e9;
  for (int i = 0; i < 10; ++i) {
    const double began = cpu_seconds();
    EXPECT_EQ(check.verify(credentials), right);
    least = std::min(least, cpu_seconds() - began);
  }
  return least;
}

TEST(Passwords, AnUnknownUserCostsAHashToo) {
  PasswordCheck check({{"alice", bcrypt_hash("secret", kCost)}});
  const double known = least_cost(check, {"alice", "wrong"}, false);
  const double unknown = least_cost(check, {"mallory", "wrong"}, false);
  EXPECT_GT(unknown, known / 1.5);
  EXPECT_LT(unknown, known * 1.5);
}

TEST(Passwords, AKnownOneCostsNoHash) {
  PasswordCheck check({{"alice", bcrypt_hash("secret", kCost)}});
  const double hash = least_cost(check, {"mallory", "wrong"}, false);
  EXPECT_LT(least_cost(check, {"alice", "secret"}, true), hash / 20);
  EXPECT_LT(least_cost(check, {"alice", "wrong"}, false), hash / 20);
}

// How long a right password takes from a peer of its own, in times of one from the peer that sends guesses.
double wait_beside_guesses() {
  const http::TemporaryDirectory directory;
  http::ServerOptions options;
  options.listen_addresses = {"127.0.0.1:0", "unix:" + (directory / "http.sock")};
  const std::string hash = bcrypt_hash("secret", kCost);
  options.web_config_file =
      directory.write("web.yml", "basic_auth_users:\n  alice: " + hash + "\n  bob: " + hash + "\n");
  const ManualClock clock;
  SnapshotCell cell;
  cell.store(http::sample_snapshot(clock.now().steady));
  const auto server = http::Server::start(options, cell, clock);
  EXPECT_TRUE(server) << server.error().message;
  if (!server) return 1e9;
  const auto ask = [&](size_t address, const std::string& password) {
    auto client = std::make_unique<TestClient>((*server)->addresses().at(address));
    EXPECT_TRUE(client->send("GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic " + password + "\r\n\r\n"));
    return client;
  };
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<TestClient>> guesses;
  for (int i = 0; i < 24; ++i) guesses.push_back(ask(0, "bWFsbG9yeTpzZWNyZXQ="));  // mallory:secret
  const auto bob = ask(0, "Ym9iOnNlY3JldA==");                                     // bob:secret
  const auto alice = ask(1, "YWxpY2U6c2VjcmV0");                                   // alice:secret
  EXPECT_EQ(alice->read().status, 200);
  const auto of_alice = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(bob->read().status, 200);
  const auto of_bob = std::chrono::steady_clock::now() - began;
  return std::chrono::duration<double>(of_alice) / std::chrono::duration<double>(of_bob);
}

// In its own line alice waits for 1 or 2 guesses, bob for 24.
TEST(Passwords, GuessesDelayTheirOwnPeer) {
  double best = 1e9;
  for (int i = 0; i < 5 && best >= 0.4; ++i) best = std::min(best, wait_beside_guesses());
  EXPECT_LT(best, 0.4);
}

}  // namespace
}  // namespace gpuledger::bench
