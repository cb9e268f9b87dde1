// SPDX-License-Identifier: Apache-2.0
#include "unit/http/bcrypt_hash.h"
#include "unit/http/server_fixture.h"

namespace gpuledger::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "alice:secret", "alice:wrong", "mallory:secret", "alice:newer"
constexpr const char* kAlice = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
constexpr const char* kWrong = "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n";
constexpr const char* kMallory = "Authorization: Basic bWFsbG9yeTpzZWNyZXQ=\r\n";
constexpr const char* kNewer = "Authorization: Basic YWxpY2U6bmV3ZXI=\r\n";

class ServerAuth : public ServerTest {
 protected:
  ServerAuth() { options_.limits.refusal_delay = milliseconds(20); }

  void write_users(const std::string& name, const std::string& hash) {
    options_.web_config_file = directory_.write("web.yml", "basic_auth_users:\n  " + name + ": " + hash + "\n");
  }
};

TEST_F(ServerAuth, AsksForAPasswordEverywhere) {
  write_users("alice", bcrypt_hash("secret"));
  start();
  for (const char* path :
       {"/metrics", "/", "/healthz", "/-/ready", "/api/v1/snapshot", "/api/v1/history", "/nowhere"}) {
    const auto denied = fetch(address(), path);
    EXPECT_EQ(denied.status, 401) << path;
    EXPECT_THAT(denied.headers.at("www-authenticate"), HasSubstr("Basic"));
  }
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  EXPECT_EQ(fetch(address(), "/metrics", kWrong).status, 401);
  EXPECT_EQ(fetch(address(), "/metrics", kMallory).status, 401);
  EXPECT_EQ(fetch(address(), "/metrics", "Authorization: Bearer x\r\n").status, 401);
  EXPECT_EQ(fetch(address(), "/metrics", "Authorization: Basic ???\r\n").status, 401);
  TestClient kept(address());
  EXPECT_EQ(kept.get("/metrics", kWrong).status, 401);
  EXPECT_EQ(kept.get("/metrics", kAlice).status, 200) << "the connection survives a mistake";
  EXPECT_EQ(kept.get("/metrics").status, 401) << "a password counts for its request only";
}

TEST_F(ServerAuth, SlowHashesHoldNobodyUpAndQueueIsBounded) {
  options_.limits.password_queue = 2;
  write_users("alice", bcrypt_hash("secret", 10));
  start();
  ASSERT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  // Of somebody nobody knows: alice's own wrong ones are wrong without a hash by now.
  // Six guesses at once: one is hashed, two wait, the rest are sent away.
  std::vector<std::unique_ptr<TestClient>> guessers;
  for (int i = 0; i < 6; ++i) {
    guessers.push_back(std::make_unique<TestClient>(address()));
    ASSERT_TRUE(guessers.back()->send(std::string("GET /metrics HTTP/1.1\r\nHost: x\r\n") + kMallory + "\r\n"));
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  const auto remembered = std::chrono::steady_clock::now() - begin;
  int denied = 0, busy = 0;
  for (auto& guesser : guessers) {
    const auto response = guesser->read();
    denied += response.status == 401;
    busy += response.status == 503;
  }
  const auto all = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(denied + busy, 6);
  EXPECT_GE(denied, 2);
  EXPECT_GE(busy, 1);
  EXPECT_LT(remembered, all / 2) << "a known password does not wait behind guesses";
}

// Distinct wrong passwords, as fast as they are answered, from many connections.
class Flood {
 public:
  Flood(const std::string& address, int clients) {
    for (int i = 0; i < clients; ++i)
      threads_.emplace_back([this, address, i] {
        for (int n = 0; !end_; ++n) {
          // base64 of "alice:" and three characters that are never the password
          std::string guess = "AAAA";
          for (char& c : guess) c = static_cast<char>('a' + (n * 31 + i * 7 + (&c - guess.data())) % 26);
          fetch(address, "/metrics", "Authorization: Basic YWxpY2U6" + guess + "\r\n");
        }
      });
  }
  ~Flood() {
    end_ = true;
    for (auto& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> end_{false};
  std::vector<std::thread> threads_;
};

TEST_F(ServerAuth, AFloodOfWrongPasswordsKeepsNoRightOneOut) {
  write_users("alice", bcrypt_hash("secret", 8));
  options_.listen_addresses = {"127.0.0.1:0", "unix:" + (directory_ / "http.sock")};
  start();
  Flood flood(address(0), 40);
  std::this_thread::sleep_for(milliseconds(300));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fetch(address(1), "/metrics", kAlice).status, 200) << "another peer's turn comes next";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1500));
  int good = 0;
  for (int i = 0; i < 20; ++i) good += fetch(address(0), "/metrics", kAlice).status == 200;
  EXPECT_EQ(good, 20) << "known from now on, to the flooding peer too";
}

TEST_F(ServerAuth, FromTheFloodingPeerARightOneGetsInWithinItsLine) {
  write_users("alice", bcrypt_hash("secret", 6));
  options_.limits.refusal_delay = milliseconds(500);
  start();
  Flood flood(address(), 24);
  std::this_thread::sleep_for(milliseconds(300));
  int good = 0;
  for (int i = 0; i < 20; ++i) good += fetch(address(), "/metrics", kAlice).status == 200;
  EXPECT_EQ(good, 20);
}

TEST_F(ServerAuth, AWrongAnswerTakesItsTimeWhetherTheUserExistsOrNot) {
  options_.limits.refusal_delay = milliseconds(300);
  write_users("alice", bcrypt_hash("secret"));
  start();
  ASSERT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  for (const char* wrong : {kWrong, kMallory}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(fetch(address(), "/metrics", wrong).status, 401);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(295)) << wrong;
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(fetch(address(), "/metrics").status, 401);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(250)) << "a browser asks without one first";
}

TEST_F(ServerAuth, WhatIsKnownOutlivesAReloadThatLeavesTheUserAsHeIs) {
  const std::string hash = bcrypt_hash("secret", 11);  // a tenth of a second
  write_users("alice", hash);
  start();
  ASSERT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  options_.web_config_file =
      directory_.write("web.yml", "basic_auth_users:\n  alice: " + hash + "\n  bob: " + hash + "\n");
  ASSERT_TRUE(server_->reload());
  auto best = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
    best = std::min(best, std::chrono::steady_clock::now() - begin);
    if (i == 0) { EXPECT_LT(best, milliseconds(60)) << "no hash was made"; }
  }
  write_users("alice", bcrypt_hash("newer"));
  ASSERT_TRUE(server_->reload());
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 401);
}

TEST_F(ServerAuth, WithAPasswordABrowserMayComeByAnyName) {
  write_users("alice", bcrypt_hash("secret"));
  start();
  TestClient client(address());
  const std::string head = "GET /metrics HTTP/1.1\r\nHost: gpus.example.com\r\nAccept-Language: en\r\n";
  ASSERT_TRUE(client.send(head + kAlice + "\r\n"));
  EXPECT_EQ(client.read().status, 200);
}

TEST_F(ServerAuth, NewUsersCountWithinMoments) {
  write_users("alice", bcrypt_hash("secret"));
  start();
  TestClient kept(address());
  EXPECT_EQ(kept.get("/metrics", kAlice).status, 200);
  write_users("alice", bcrypt_hash("newer"));
  EXPECT_TRUE(eventually([&] { return fetch(address(), "/metrics", kNewer).status == 200; }));
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 401) << "what was remembered is forgotten";
  EXPECT_EQ(kept.get("/metrics", kAlice).status, 401) << "on old connections too";
  EXPECT_THAT(outcomes(), ElementsAre("ok"));
}

TEST_F(ServerAuth, BrokenFileKeepsTheOldSettingsAndIsReportedOnce) {
  write_users("alice", bcrypt_hash("secret"));
  start();
  directory_.write("web.yml", "basic_auth_userz: {}\n");
  EXPECT_TRUE(eventually([&] { return !outcomes().empty(); }));
  std::this_thread::sleep_for(milliseconds(100));  // five more looks at the same broken file
  ASSERT_EQ(outcomes().size(), 1u);
  EXPECT_THAT(outcomes()[0], HasSubstr("\"basic_auth_userz\""));
  EXPECT_EQ(fetch(address(), "/metrics").status, 401);
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  const Status asked = server_->reload();
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().message, HasSubstr("\"basic_auth_userz\""));
  std::filesystem::remove(directory_ / "web.yml");
  EXPECT_TRUE(eventually([&] { return outcomes().size() == 2; }));
  EXPECT_EQ(fetch(address(), "/metrics").status, 401) << "a file that is gone opens no door";
  write_users("alice", bcrypt_hash("newer"));
  EXPECT_TRUE(eventually([&] { return fetch(address(), "/metrics", kNewer).status == 200; }));
}

TEST_F(ServerAuth, ReloadsWhenAsked) {
  options_.limits.web_config_poll = std::chrono::hours(1);
  write_users("alice", bcrypt_hash("secret"));
  start();
  write_users("alice", bcrypt_hash("newer"));
  EXPECT_EQ(fetch(address(), "/metrics", kNewer).status, 401);
  ASSERT_TRUE(server_->reload());
  EXPECT_EQ(fetch(address(), "/metrics", kNewer).status, 200);
}

TEST_F(ServerAuth, StopsWhileAPasswordIsChecked) {
  write_users("alice", bcrypt_hash("secret", 13));
  start();
  TestClient client(address());
  ASSERT_TRUE(client.send(std::string("GET /metrics HTTP/1.1\r\nHost: x\r\n") + kWrong + "\r\n"));
  std::this_thread::sleep_for(milliseconds(50));
  const auto begin = std::chrono::steady_clock::now();
  server_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(500));
  EXPECT_TRUE(client.closed_within(milliseconds(1000)));
  server_.reset();
}

TEST_F(ServerAuth, SurvivesClientsThatLeaveDuringTheCheck) {
  write_users("alice", bcrypt_hash("secret", 8));
  start();
  for (int i = 0; i < 20; ++i) {
    TestClient hasty(address());
    hasty.send(std::string("GET /metrics HTTP/1.1\r\nHost: x\r\n") + kWrong + "\r\n");
  }
  EXPECT_TRUE(eventually([&] { return fetch(address(), "/metrics", kAlice).status == 200; }));
}

TEST_F(ServerAuth, HeadersAndRateLimit) {
  options_.web_config_file = directory_.write("web.yml", R"(
http_server_config:
  http2: true
  headers:
    Content-Security-Policy: default-src 'self'
    Strict-Transport-Security: max-age=60
rate_limit: {interval: 1h, burst: 3}
)");
  start();
  const auto page = fetch(address(), "/");
  EXPECT_EQ(page.headers.at("content-security-policy"), "default-src 'self'");
  EXPECT_EQ(page.headers.at("strict-transport-security"), "max-age=60");
  EXPECT_EQ(page.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(fetch(address(), "/metrics").status, 200);
  EXPECT_EQ(fetch(address(), "/metrics").status, 200);
  EXPECT_EQ(fetch(address(), "/metrics").status, 429);
}

}  // namespace
}  // namespace gpuledger::http
