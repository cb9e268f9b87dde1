#include "unit/http/server_fixture.h"

namespace gpuledger::http {
namespace {

class ServerLimitsTest : public ServerTest {
 protected:
  static double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

TEST_F(ServerLimitsTest, LargeHeaderGets431) {
  start();
  for (const size_t size : {9'000, 100'000}) {
    TestClient client(address());
    const auto response = client.get("/metrics", "X-Long: " + std::string(size, 'x') + "\r\n");
    EXPECT_EQ(response.status, 431) << size;
    EXPECT_EQ(response.headers.at("connection"), "close");
    EXPECT_TRUE(client.closed_within(milliseconds(3000)));
  }
  TestClient endless(address());
  ASSERT_TRUE(endless.send("GET /" + std::string(20'000, 'x')));
  EXPECT_EQ(endless.read().status, 431);
  EXPECT_EQ(fetch(address(), "/metrics", "X-Long: " + std::string(7'000, 'x') + "\r\n").status, 200);
}

TEST_F(ServerLimitsTest, LargeBodyGets413) {
  start();
  TestClient announced(address());
  ASSERT_TRUE(announced.send("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"));
  EXPECT_EQ(announced.read().status, 413);
  TestClient chunked(address());
  ASSERT_TRUE(chunked.send("POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1388\r\n" +
                           std::string(5000, 'x') + "\r\n0\r\n\r\n"));
  EXPECT_EQ(chunked.read().status, 413);
}

TEST_F(ServerLimitsTest, AFurtherConnectionTakesThePlaceOfTheLongestIdleOne) {
  options_.limits.connections = 3;
  start();
  TestClient half(address());  // the oldest, but in the middle of a request
  ASSERT_TRUE(half.send("GET /healthz HTTP/1.1\r\n"));
  TestClient long_idle(address()), idle(address());
  EXPECT_EQ(idle.get("/healthz").status, 200);
  EXPECT_EQ(long_idle.get("/healthz").status, 200);
  EXPECT_EQ(idle.get("/healthz").status, 200) << "the later one of the two from now on";

  TestClient fourth(address());
  EXPECT_EQ(fourth.get("/metrics").status, 200);
  EXPECT_TRUE(long_idle.closed_within(milliseconds(3000)));
  EXPECT_EQ(idle.get("/healthz").status, 200) << "the others are not disturbed";
  ASSERT_TRUE(half.send("Host: x\r\n\r\n"));
  EXPECT_EQ(half.read().status, 200);
}

TEST_F(ServerLimitsTest, WhereNobodyIsIdleFurtherConnectionsAreClosedAtOnce) {
  options_.limits.connections = 3;
  start();
  std::vector<std::unique_ptr<TestClient>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<TestClient>(address()));
    EXPECT_EQ(held.back()->get("/healthz").status, 200);
    ASSERT_TRUE(held.back()->send("GET /healthz HTTP/1.1\r\n"));
  }
  std::this_thread::sleep_for(milliseconds(100));  // the server is to hear them first
  EXPECT_TRUE(TestClient(address()).closed_within(milliseconds(3000)));
  ASSERT_TRUE(held[0]->send("Host: x\r\n\r\n"));
  EXPECT_EQ(held[0]->read().status, 200) << "those inside are not disturbed";
  held.pop_back();
  EXPECT_TRUE(eventually([&] { return fetch(address(), "/healthz").status == 200; })) << "a place became free";
}

TEST_F(ServerLimitsTest, EveryPlaceComesBack) {
  options_.limits.connections = 4;
  options_.limits.header_timeout = milliseconds(100);
  options_.limits.idle_timeout = milliseconds(100);
  start();
  // Each of these ends in its own way: cut off, garbage, refused, gone in the middle, asked to close.
  for (int round = 0; round < 5; ++round) {
    TestClient silent(address()), garbage(address()), large(address()), polite(address());
    garbage.send("nonsense\r\n\r\n");
    large.send("GET /" + std::string(20'000, 'x'));
    polite.get("/metrics", "Connection: close\r\n");
    EXPECT_TRUE(silent.closed_within(milliseconds(2000)));
  }
  EXPECT_TRUE(eventually([&] {
    std::vector<std::unique_ptr<TestClient>> four;
    for (int i = 0; i < 4; ++i) {
      four.push_back(std::make_unique<TestClient>(address()));
      if (four.back()->get("/healthz").status != 200) return false;
    }
    return true;
  }));
}

TEST_F(ServerLimitsTest, SlowClientIsCutOffAndHoldsNobodyUp) {
  options_.limits.header_timeout = milliseconds(400);
  start();
  const auto begin = std::chrono::steady_clock::now();
  TestClient slow(address());
  bool cut = false;
  for (int i = 0; i < 100 && !cut; ++i) {
    // Every byte comes in time; the request as a whole does not.
    slow.send("x");
    const auto before = std::chrono::steady_clock::now();
    EXPECT_EQ(fetch(address(), "/metrics").status, 200);
    EXPECT_LT(seconds_since(before), 1.0);
    cut = slow.closed_within(milliseconds(20));
  }
  EXPECT_TRUE(cut);
  EXPECT_GE(seconds_since(begin), 0.38);
  EXPECT_LT(seconds_since(begin), 5.0);
}

TEST_F(ServerLimitsTest, SilentClientIsCutOff) {
  options_.limits.header_timeout = milliseconds(150);
  start();
  TestClient silent(address());
  EXPECT_TRUE(silent.closed_within(milliseconds(2000)));
}

TEST_F(ServerLimitsTest, IdleConnectionLivesLongerThanAHalfRequest) {
  options_.limits.header_timeout = milliseconds(150);
  options_.limits.idle_timeout = milliseconds(1000);
  start();
  TestClient idle(address());
  EXPECT_EQ(idle.get("/healthz").status, 200);
  EXPECT_FALSE(idle.closed_within(milliseconds(350)));
  EXPECT_EQ(idle.get("/healthz").status, 200);
  EXPECT_TRUE(idle.closed_within(milliseconds(3000)));

  TestClient half(address());
  EXPECT_EQ(half.get("/healthz").status, 200);
  ASSERT_TRUE(half.send("GET /"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(half.closed_within(milliseconds(3000)));
  EXPECT_LT(seconds_since(begin), 0.8);
}

TEST_F(ServerLimitsTest, ClientThatDoesNotReadIsCutOff) {
  options_.limits.write_timeout = milliseconds(300);
  auto snapshot = std::make_shared<Snapshot>(*sample_snapshot(clock_.now().steady));
  snapshot->text = LazyText(std::string(32 << 20, 'x'));
  cell_.store(snapshot);
  start_empty();
  std::weak_ptr<const Snapshot> watched = snapshot;
  TestClient lazy(address());
  ASSERT_TRUE(lazy.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
  std::this_thread::sleep_for(milliseconds(100));
  snapshot.reset();
  cell_.store(sample_snapshot(clock_.now().steady));
  EXPECT_FALSE(watched.expired()) << "still being sent";
  EXPECT_EQ(fetch(address(), "/metrics").status, 200);
  EXPECT_TRUE(eventually([&] { return watched.expired(); })) << "let go when the time was up";
}

TEST_F(ServerLimitsTest, ManyClientsAtOnce) {
  start();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        if (fetch(address(), "/metrics").status == 200) ++good;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
}

}  // namespace
}  // namespace gpuledger::http
