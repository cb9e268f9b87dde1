// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/file.h"
#include "unit/http/server_fixture.h"

namespace gpuledger::http {
namespace {

class ServerLimitsTest : public ServerTest {
 protected:
  // A client that asks and does not read. Returns when its answer has begun.
  std::unique_ptr<TestClient> lazy_client() {
    auto client = std::make_unique<TestClient>(address());
    EXPECT_TRUE(client->send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(eventually([&] { return client->has_bytes(); }));
    return client;
  }
  // Of this process: both ends of every connection.
  static size_t open_descriptors() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
  }
};

TEST_F(ServerLimitsTest, LargeHeaderGets431) {
  start();
  for (const size_t size : {9'000, 100'000}) {
    TestClient client(address());
    const auto response = client.get("/metrics", "X-Long: " + std::string(size, 'x') + "\r\n");
    EXPECT_EQ(response.status, 431) << size;
    EXPECT_EQ(response.headers.at("connection"), "close");
    EXPECT_TRUE(client.closed());
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

TEST_F(ServerLimitsTest, AFurtherConnectionTakesThePlaceOfTheOneLongestWithoutAWholeRequest) {
  options_.limits.connections = 3;
  start();
  TestClient half(address());  // the oldest, and still in the middle of its first request
  ASSERT_TRUE(half.send("GET /healthz HTTP/1.1\r\n"));
  TestClient earlier(address()), later(address());
  EXPECT_EQ(later.get("/healthz").status, 200);
  EXPECT_EQ(earlier.get("/healthz").status, 200);
  EXPECT_EQ(later.get("/healthz").status, 200) << "the later one of the two from now on";

  TestClient fourth(address());
  EXPECT_EQ(fourth.get("/metrics").status, 200);
  EXPECT_TRUE(half.closed());
  EXPECT_EQ(fetch(address(), "/metrics").status, 200);
  EXPECT_TRUE(earlier.closed());
  EXPECT_EQ(later.get("/healthz").status, 200) << "the others are not disturbed";
}

TEST_F(ServerLimitsTest, OnePeerTakesPlacesOfItsOwnOnly) {
  options_.limits.connections = 8;
  options_.limits.connections_per_peer = 2;
  options_.listen_addresses = {"127.0.0.1:0", "unix:" + (directory_ / "http.sock")};
  start();
  TestClient other(address(1));  // silent, and older than all of the first peer's
  std::vector<std::unique_ptr<TestClient>> greedy;
  for (int i = 0; i < 20; ++i) greedy.push_back(std::make_unique<TestClient>(address(0)));
  EXPECT_EQ(fetch(address(0), "/healthz").status, 200);
  EXPECT_EQ(other.get("/healthz").status, 200);
  EXPECT_TRUE(greedy[0]->closed());
}

TEST_F(ServerLimitsTest, OutOfDescriptorsSomebodyHasToGo) {
  start();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<std::unique_ptr<TestClient>> held;
  for (int i = 0; i < 20; ++i) held.push_back(std::make_unique<TestClient>(address()));
  EXPECT_EQ(held.back()->get("/healthz").status, 200) << "all of them are accepted";
  const size_t in_use = open_descriptors();
  EXPECT_EQ(fetch(address(), "/healthz").status, 200);
  ASSERT_TRUE(eventually([&] { return open_descriptors() == in_use; })) << "the server's end of it is gone too";
  // Holes filled, there is room for one: this end of the next connection, and not the server's.
  std::vector<UniqueFd> filled;
  for (int i = 0; i < 64; ++i) filled.emplace_back(::dup(0));
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(filled.back().get()) + 2;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  TestClient next(address());
  EXPECT_TRUE(held[0]->closed());
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(next.connected());
  EXPECT_EQ(next.get("/healthz").status, 200);
}

TEST_F(ServerLimitsTest, EveryPlaceComesBack) {
  options_.limits.connections = 4;
  options_.limits.header_timeout = milliseconds(100);
  start();
  // Each of these ends in its own way: cut off, garbage, refused, gone in the middle, asked to close.
  for (int round = 0; round < 5; ++round) {
    TestClient silent(address()), garbage(address()), large(address()), polite(address());
    garbage.send("nonsense\r\n\r\n");
    large.send("GET /" + std::string(20'000, 'x'));
    polite.get("/metrics", "Connection: close\r\n");
    EXPECT_TRUE(silent.closed());
  }
  std::vector<std::unique_ptr<TestClient>> four;
  for (int i = 0; i < 4; ++i) four.push_back(served_client());
  for (const auto& client : four) EXPECT_EQ(client->get("/healthz").status, 200) << "nobody had to go for another";
}

TEST_F(ServerLimitsTest, HalfARequestHoldsNobodyUp) {
  start();
  TestClient slow(address());
  ASSERT_TRUE(slow.send("GET /healthz HTTP/1.1\r\n"));
  EXPECT_EQ(fetch(address(), "/metrics").status, 200);
  ASSERT_TRUE(slow.send("Host: x\r\n\r\n"));
  EXPECT_EQ(slow.read().status, 200) << "it has all the time of the limit";
}

TEST_F(ServerLimitsTest, SlowClientIsCutOff) {
  options_.limits.header_timeout = milliseconds(400);
  start();
  const auto other = served_client();
  const auto begin = std::chrono::steady_clock::now();
  TestClient slow(address());
  // Every byte comes in time; the request as a whole does not.
  EXPECT_TRUE(eventually([&] {
    slow.send("x");
    EXPECT_EQ(other->get("/metrics").status, 200);
    return slow.closed(milliseconds(0));
  }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(400));
}

TEST_F(ServerLimitsTest, SilentClientIsCutOff) {
  options_.limits.header_timeout = milliseconds(150);
  start();
  TestClient silent(address());
  EXPECT_TRUE(silent.closed());
}

TEST_F(ServerLimitsTest, IdleConnectionLivesLongerThanAHalfRequest) {
  options_.limits.header_timeout = milliseconds(150);
  start();
  const auto idle = served_client();
  const auto half = served_client();
  ASSERT_TRUE(half->send("GET /"));
  EXPECT_TRUE(half->closed());
  EXPECT_EQ(idle->get("/healthz").status, 200) << "silent for longer than the other";
}

TEST_F(ServerLimitsTest, IdleConnectionIsClosedToo) {
  options_.limits.idle_timeout = milliseconds(150);
  start();
  TestClient idle(address());
  EXPECT_EQ(idle.get("/healthz").status, 200);
  EXPECT_TRUE(idle.closed());
}

TEST_F(ServerLimitsTest, ClientThatDoesNotReadIsCutOff) {
  options_.limits.write_timeout = milliseconds(300);
  options_.limits.bytes_being_sent = 64 << 20;  // more than the text
  auto snapshot = std::make_shared<Snapshot>(*sample_snapshot(clock_.now().steady));
  snapshot->text = LazyText(std::string(32 << 20, 'x'));
  cell_.store(snapshot);
  start_empty();
  const std::weak_ptr<const Snapshot> watched = snapshot;
  const std::weak_ptr<const std::string> text = snapshot->text.share();
  const auto lazy = lazy_client();
  snapshot.reset();
  cell_.store(sample_snapshot(clock_.now().steady));
  EXPECT_EQ(fetch(address(), "/metrics").status, 200);
  EXPECT_TRUE(eventually([&] { return watched.expired(); })) << "the text is all that is held";
  EXPECT_TRUE(eventually([&] { return text.expired(); })) << "until the time is over";
  EXPECT_TRUE(lazy->closed());
}

TEST_F(ServerLimitsTest, SlowReadersHoldNoMoreThanTheBudget) {
  options_.limits.bytes_being_sent = 40 << 20;
  start();
  std::vector<std::unique_ptr<TestClient>> lazy;
  std::vector<std::weak_ptr<const std::string>> texts;
  for (int i = 0; i < 6; ++i) {
    auto snapshot = std::make_shared<Snapshot>(*sample_snapshot(clock_.now().steady));
    snapshot->text = LazyText(std::string(16 << 20, 'x'));
    texts.push_back(snapshot->text.share());
    cell_.store(snapshot);
    for (int twice = 0; twice < 2; ++twice) lazy.push_back(lazy_client());
    clock_.advance(milliseconds(30));
  }
  const auto held = [&] { return std::count_if(texts.begin(), texts.end(), [](auto& t) { return !t.expired(); }); };
  EXPECT_TRUE(eventually([&] { return held() == 2; })) << held() << " texts of 16 MiB with 40 MiB to give";
  EXPECT_TRUE(lazy[0]->closed()) << "of those that just began, who began first";
  EXPECT_EQ(lazy.back()->read().status, 200) << "the latest are not disturbed";
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
