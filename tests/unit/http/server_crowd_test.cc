// SPDX-License-Identifier: Apache-2.0
// More clients than places: who has to go.
#include "unit/http/server_fixture.h"

namespace gpuledger::http {
namespace {

constexpr size_t kAnswer = 32 << 20;  // more than the kernel buffers

class ServerCrowd : public ServerTest {
 protected:
  ServerCrowd() { options_.limits.bytes_being_sent = 64 << 20; }

  void start_with_large_answer() {
    auto snapshot = std::make_shared<Snapshot>(*sample_snapshot(clock_.now().steady));
    snapshot->text = LazyText(std::string(kAnswer, 'x'));
    cell_.store(snapshot);
    start_empty();
  }
  std::unique_ptr<TestClient> come(const std::string& from, const std::string& bytes = "") {
    auto client = std::make_unique<TestClient>(address(), std::nullopt, from);
    EXPECT_TRUE(client->connected() && client->send(bytes)) << from;
    return client;
  }
  // Its answer has begun.
  std::unique_ptr<TestClient> asking(const std::string& from) {
    auto client = come(from, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return client->has_bytes(); }));
    return client;
  }
  // From eight addresses in turns. Connections are accepted in their order: when the last has an answer, all were.
  void flood(size_t count, const std::string& bytes) {
    for (size_t i = 0; i < count; ++i) {
      crowd_.push_back(come("127.0.0." + std::to_string(1 + i % 8), bytes));
      if (crowd_.size() > 400) crowd_.erase(crowd_.begin());  // this process's descriptors
    }
    EXPECT_EQ(come("127.0.0.100")->get("/healthz").status, 200);
  }

  std::vector<std::unique_ptr<TestClient>> crowd_;
};

TEST_F(ServerCrowd, WhoIsBeingAnsweredIsNotEndedByAFlood) {
  start_with_large_answer();
  for (const char* kind : {"", "GET /metrics HTTP/1.1\r\nHo", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    std::vector<std::unique_ptr<TestClient>> honest;
    for (int i = 0; i < 6; ++i) honest.push_back(asking("127.0.0.50"));
    flood(1000, kind);
    for (const auto& client : honest) EXPECT_EQ(client->read().body.size(), kAnswer) << kind;
  }
}

TEST_F(ServerCrowd, WhoReadsIsNotEndedByThoseWhoDoNot) {
  options_.limits.connections = 4;
  start_with_large_answer();
  const auto reads = asking("127.0.0.50");
  std::vector<std::unique_ptr<TestClient>> stalled;
  for (int i = 1; i <= 3; ++i) stalled.push_back(asking("127.0.0." + std::to_string(i)));
  ASSERT_TRUE(reads->gather(kAnswer / 4 * 3)) << "more than was sent before the others came";
  const auto next = come("127.0.0.9");
  EXPECT_EQ(next->get("/healthz").status, 200);
  EXPECT_TRUE(stalled[0]->closed()) << "the first that reads nothing";
  EXPECT_EQ(reads->read().body.size(), kAnswer);
  EXPECT_FALSE(stalled[1]->closed(milliseconds(0)));
}

// Places full of those who ask and do not read: a new one must have the time to ask.
TEST_F(ServerCrowd, ANewConnectionOutlivesAFloodOfRequests) {
  start_with_large_answer();
  const auto quiet = come("127.0.0.50");
  flood(600, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(quiet->get("/healthz").status, 200);
}

TEST_F(ServerCrowd, AProbeAmongAFloodOfSilentOnesIsAnswered) {
  start();
  const auto probe = come("127.0.0.50", "GET /healthz HTTP/1.1\r\n");
  flood(1000, "");
  ASSERT_TRUE(probe->send("Host: x\r\n\r\n"));
  EXPECT_EQ(probe->read().status, 200) << "one connection of one client, beside eight with many";
}

}  // namespace
}  // namespace gpuledger::http
