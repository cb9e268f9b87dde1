// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "unit/http/bcrypt_hash.h"
#include "unit/http/hash_watch.h"
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

  using Clients = std::vector<std::unique_ptr<TestClient>>;
  // It has asked, and reads no answer yet.
  static std::unique_ptr<TestClient> asking(const std::string& address, const std::string& password) {
    auto client = std::make_unique<TestClient>(address);
    EXPECT_TRUE(client->send("GET /metrics HTTP/1.1\r\nHost: x\r\n" + password + "\r\n"));
    return client;
  }
  static int64_t answered(const Clients& clients) {
    return std::count_if(clients.begin(), clients.end(), [](const auto& client) { return client->has_bytes(); });
  }
  // How many got which.
  static std::map<int, int> statuses(const Clients& clients) {
    std::map<int, int> all;
    for (const auto& client : clients) ++all[client->read().status];
    return all;
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
  write_users("alice", bcrypt_hash("secret"));
  start();
  ASSERT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  HashWatch hashes;
  hashes.hold();
  // Of somebody nobody knows: alice's own wrong ones are wrong without a hash by now.
  Clients guessers;
  guessers.push_back(asking(address(), kMallory));
  ASSERT_TRUE(hashes.wait_for(1));
  // One is hashed, two wait, the rest are sent away.
  for (int i = 0; i < 5; ++i) guessers.push_back(asking(address(), kMallory));
  EXPECT_TRUE(eventually([&] { return answered(guessers) == 3; }));
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 200) << "a known password does not wait behind guesses";
  hashes.let_go();
  EXPECT_EQ(statuses(guessers), (std::map<int, int>{{401, 3}, {503, 3}}));
}

TEST_F(ServerAuth, APeerThatGuessesKeepsNoOtherPeerOut) {
  options_.limits.password_queue_per_peer = 2;
  options_.listen_addresses = {"127.0.0.1:0", "unix:" + (directory_ / "http.sock")};
  write_users("alice", bcrypt_hash("secret"));
  start();
  HashWatch hashes;
  hashes.hold();
  Clients guessers;
  guessers.push_back(asking(address(0), kWrong));
  ASSERT_TRUE(hashes.wait_for(1));
  for (int i = 0; i < 3; ++i) guessers.push_back(asking(address(0), kWrong));
  ASSERT_TRUE(eventually([&] { return answered(guessers) == 1; })) << "its line is full";
  const auto alice = asking(address(1), kAlice);
  EXPECT_EQ(fetch(address(1), "/metrics").status, 401) << "came later than alice, who is in the other line by now";
  hashes.let_go();
  EXPECT_EQ(alice->read().status, 200);
  EXPECT_EQ(statuses(guessers), (std::map<int, int>{{401, 3}, {503, 1}}));
  const auto begun = hashes.begun();
  ASSERT_EQ(begun.size(), 3u) << "what came after the right one was wrong without a hash";
  EXPECT_EQ(begun[2].password, "secret") << "peers take turns";
  hashes.hold();
  EXPECT_EQ(fetch(address(0), "/metrics", kAlice).status, 200) << "known from now on, to the guessing peer too";
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
          ++answers_;
        }
      });
  }
  ~Flood() {
    end_ = true;
    for (auto& thread : threads_) thread.join();
  }
  // Returns when every client has come a second time.
  bool under_way() const {
    return eventually([&] { return answers_ >= 2 * static_cast<int>(threads_.size()); });
  }

 private:
  std::atomic<bool> end_{false};
  std::atomic<int> answers_{0};
  std::vector<std::thread> threads_;
};

TEST_F(ServerAuth, AFloodOfWrongPasswordsKeepsNoRightOneOut) {
  write_users("alice", bcrypt_hash("secret", 6));
  options_.listen_addresses = {"127.0.0.1:0", "unix:" + (directory_ / "http.sock")};
  start();
  Flood flood(address(0), 40);
  ASSERT_TRUE(flood.under_way());
  EXPECT_EQ(fetch(address(1), "/metrics", kAlice).status, 200) << "from another peer";
  int good = 0;
  for (int i = 0; i < 20; ++i) good += fetch(address(0), "/metrics", kAlice).status == 200;
  EXPECT_EQ(good, 20) << "known from now on, to the flooding peer too";
}

TEST_F(ServerAuth, FromTheFloodingPeerARightOneGetsInWithinItsLine) {
  write_users("alice", bcrypt_hash("secret", 6));
  options_.limits.refusal_delay = milliseconds(100);
  start();
  Flood flood(address(), 24);
  ASSERT_TRUE(flood.under_way());
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
}

TEST_F(ServerAuth, WhoGivesNoPasswordDoesNotWait) {
  options_.limits.refusal_delay = std::chrono::hours(1);
  write_users("alice", bcrypt_hash("secret"));
  start();
  EXPECT_EQ(fetch(address(), "/metrics").status, 401) << "a browser asks without one first";
}

TEST_F(ServerAuth, WhatIsKnownOutlivesAReloadThatLeavesTheUserAsHeIs) {
  const std::string hash = bcrypt_hash("secret"), other = bcrypt_hash("newer");
  write_users("alice", hash);
  start();
  ASSERT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  const HashWatch hashes;
  directory_.write("web.yml", "basic_auth_users:\n  alice: " + hash + "\n  bob: " + hash + "\n");
  ASSERT_TRUE(server_->reload());
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  EXPECT_TRUE(hashes.begun().empty());
  write_users("alice", other);
  ASSERT_TRUE(server_->reload());
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 401);
  EXPECT_EQ(hashes.begun().size(), 1u);
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
  EXPECT_EQ(fetch(address(), "/metrics").status, 401);
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  const Status asked = server_->reload();
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().message, HasSubstr("\"basic_auth_userz\""));
  std::filesystem::remove(directory_ / "web.yml");
  EXPECT_TRUE(eventually([&] { return outcomes().size() > 1; }));
  EXPECT_THAT(outcomes(), ElementsAre(HasSubstr("\"basic_auth_userz\""), HasSubstr("No such file")));
  EXPECT_EQ(fetch(address(), "/metrics").status, 401) << "a file that is gone opens no door";
  write_users("alice", bcrypt_hash("newer"));
  EXPECT_TRUE(eventually([&] { return fetch(address(), "/metrics", kNewer).status == 200; }));
}

TEST_F(ServerAuth, AnEmptyFileOpensNoDoor) {
  write_users("alice", bcrypt_hash("secret"));
  start();
  size_t reports = 0;
  for (const std::string& text : {std::string(), std::string(300, '\0'), std::string("basic_auth_users:\n"),
                                  std::string("rate_limit: {interval: 1ms, burst: 100}\n")}) {
    directory_.write("web.yml", text);
    ++reports;
    ASSERT_TRUE(eventually([&] { return outcomes().size() == reports; }));
    EXPECT_NE(outcomes().back(), "ok");
    EXPECT_EQ(fetch(address(), "/metrics").status, 401);
    EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 200);
  }
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
  write_users("alice", bcrypt_hash("secret"));
  start();
  HashWatch hashes;
  hashes.hold();
  const auto client = asking(address(), kWrong);
  ASSERT_TRUE(hashes.wait_for(1));
  server_->stop();
  EXPECT_TRUE(client->closed());
  server_.reset();
  hashes.let_go();
}

TEST_F(ServerAuth, SurvivesClientsThatLeaveDuringTheCheck) {
  write_users("alice", bcrypt_hash("secret"));
  start();
  HashWatch hashes;
  hashes.hold();
  for (int i = 0; i < 20; ++i) (void)asking(address(), kWrong);
  ASSERT_TRUE(hashes.wait_for(1));
  hashes.let_go();
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

TEST_F(ServerAuth, ProbesAreNeverRateLimited) {
  options_.web_config_file = directory_.write("web.yml", "rate_limit: {interval: 1h, burst: 2}\n");
  start();
  const auto probe = [&] {
    for (const char* path : {"/healthz", "/health", "/readyz", "/-/ready"})
      EXPECT_EQ(fetch(address(), path).status, 200);
  };
  probe();
  for (const int status : {200, 200, 429, 429}) EXPECT_EQ(fetch(address(), "/metrics").status, status);
  probe();
  EXPECT_EQ(fetch(address(), "/healthzz").status, 429);
}

TEST_F(ServerAuth, GuessesAreRateLimitedOnProbesToo) {
  options_.web_config_file = directory_.write(
      "web.yml", "basic_auth_users:\n  alice: " + bcrypt_hash("secret") + "\nrate_limit: {interval: 1h, burst: 2}\n");
  start();
  EXPECT_EQ(fetch(address(), "/healthz", kAlice).status, 200);
  for (const int status : {401, 429, 429}) EXPECT_EQ(fetch(address(), "/healthz", kMallory).status, status);
  EXPECT_EQ(fetch(address(), "/metrics", kAlice).status, 429);
  EXPECT_EQ(fetch(address(), "/healthz", kAlice).status, 200) << "a password that was right before";
}

}  // namespace
}  // namespace gpuledger::http
