// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <filesystem>

#include "support/localhost.h"
#include "unit/http/gunzip.h"
#include "unit/http/server_fixture.h"

namespace gpuledger::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using ServerBasics = ServerTest;

TEST_F(ServerBasics, ServesBothFormats) {
  start();
  const auto text = fetch(address(), "/metrics");
  EXPECT_EQ(text.status, 200);
  EXPECT_EQ(text.body, cell_.load()->text.get());
  EXPECT_EQ(text.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(text.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(text.headers.at("vary"), "Accept, Accept-Encoding");
  EXPECT_THAT(text.headers.at("date"), testing::EndsWith(" GMT"));
  // A list header may come in several lines.
  const auto open = fetch(address(), "/metrics",
                          "Accept: text/plain;q=0.5\r\nAccept: application/openmetrics-text;version=1.0.0\r\n");
  EXPECT_EQ(open.headers.at("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_EQ(open.body, cell_.load()->openmetrics.get());
  EXPECT_EQ(fetch(address(), "/metrics", "Accept: text/html\r\n").body, text.body);
  EXPECT_EQ(fetch(address(), "/api/v1/snapshot").body, cell_.load()->json.get());
}

TEST_F(ServerBasics, PacksWithGzip) {
  start();
  const auto packed = fetch(address(), "/metrics", "Accept-Encoding: gzip\r\n");
  EXPECT_EQ(packed.headers.at("content-encoding"), "gzip");
  EXPECT_EQ(gunzip(packed.body), cell_.load()->text.get());
}

TEST_F(ServerBasics, AnswersBeforeTheFirstSnapshotAndAfterTheLast) {
  options_.stale_after = std::chrono::seconds(5);
  start_empty();
  EXPECT_EQ(fetch(address(), "/metrics").status, 503);
  EXPECT_EQ(fetch(address(), "/-/ready").status, 503);
  EXPECT_EQ(fetch(address(), "/healthz").body, "ok\n");
  cell_.store(sample_snapshot(clock_.now().steady));
  EXPECT_EQ(fetch(address(), "/metrics").status, 200);
  EXPECT_EQ(fetch(address(), "/readyz").status, 200);
  cell_.store(sample_snapshot(clock_.now().steady - std::chrono::minutes(1)));
  EXPECT_EQ(fetch(address(), "/metrics").status, 200);
  EXPECT_EQ(fetch(address(), "/readyz").status, 503);
}

TEST_F(ServerBasics, AChangedIntervalChangesWhatIsStale) {
  options_.stale_after = std::chrono::seconds(5);
  start_empty();
  cell_.store(sample_snapshot(clock_.now().steady - std::chrono::minutes(1)));
  EXPECT_EQ(fetch(address(), "/readyz").status, 503);
  server_->change_stale_after(std::chrono::minutes(3));
  EXPECT_EQ(fetch(address(), "/readyz").status, 200);
}

TEST_F(ServerBasics, KeepsAliveAndAnswersHead) {
  start();
  TestClient client(address());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get("/metrics").status, 200);
  ASSERT_TRUE(client.send("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
  const auto head = client.read(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-length"), std::to_string(cell_.load()->text.get().size()));
  EXPECT_EQ(client.get("/healthz").body, "ok\n") << "no body came after HEAD";
  EXPECT_EQ(client.get("/nowhere").status, 404);
  ASSERT_TRUE(client.send("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"));
  const auto post = client.read();
  EXPECT_EQ(post.status, 405);
  EXPECT_EQ(post.headers.at("allow"), "GET, HEAD");
  EXPECT_EQ(client.get("/healthz", "Connection: close\r\n").status, 200);
  EXPECT_TRUE(client.closed());
}

TEST_F(ServerBasics, AnswersPipelinedRequestsInOrder) {
  start();
  TestClient client(address());
  std::string requests;
  for (int i = 0; i < 50; ++i)
    requests += std::string("GET ") + (i % 2 == 0 ? "/healthz" : "/metrics") + " HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_TRUE(client.send(requests));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.read().body, i % 2 == 0 ? "ok\n" : cell_.load()->text.get()) << i;
}

TEST_F(ServerBasics, SpeaksHttp10) {
  start();
  TestClient once(address());
  ASSERT_TRUE(once.send("GET /healthz HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(once.read().body, "ok\n");
  EXPECT_TRUE(once.closed());
  TestClient more(address());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(more.send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    EXPECT_EQ(more.read().body, "ok\n");
  }
}

TEST_F(ServerBasics, RefusesWhatIsNotHttp) {
  start();
  for (const char* garbage :
       {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n", "GET /metrics HTTP/9.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET /metrics HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /met rics HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nX-Long: a\r\n b\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nX-Long:\r\n\tb\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
    TestClient client(address());
    ASSERT_TRUE(client.send(garbage));
    EXPECT_EQ(client.read().status, 400) << garbage;
    EXPECT_TRUE(client.closed()) << garbage;
  }
}

TEST_F(ServerBasics, RefusesTransferCodingsItDoesNotKnow) {
  start();
  for (const char* coding : {"xchunked", "gzip, chunked", "identity", "chunked, chunked"}) {
    TestClient client(address());
    ASSERT_TRUE(client.send(std::string("GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ") + coding +
                            "\r\n\r\n0\r\n\r\n"));
    EXPECT_GE(client.read().status, 400) << coding;
    EXPECT_TRUE(client.closed()) << "what follows may be a body: " << coding;
  }
  TestClient known(address());
  ASSERT_TRUE(
      known.send("GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\n\r\n \r\n0\r\n\r\n"));
  EXPECT_EQ(known.read().status, 200) << "a body may hold anything";
  EXPECT_EQ(known.get("/healthz").status, 200);
}

TEST_F(ServerBasics, TellsWhoWaitsForItToContinue) {
  start();
  TestClient client(address());
  ASSERT_TRUE(client.send("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n"));
  EXPECT_EQ(client.read().status, 100);
  ASSERT_TRUE(client.send("abc"));
  EXPECT_EQ(client.read().status, 405);
  EXPECT_EQ(client.get("/healthz").status, 200) << "the connection goes on";
  EXPECT_EQ(client.get("/healthz", "Expect: 100-continue\r\n").status, 200) << "nothing to wait for";
  EXPECT_EQ(client.get("/healthz", "Expect: miracles\r\n").status, 417);
  TestClient large(address());
  ASSERT_TRUE(large.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_EQ(large.read().status, 413);
}

TEST_F(ServerBasics, ABrowserMayNotComeByAStrangeName) {
  options_.allowed_hosts = {"gpus.example.org"};
  start();
  const auto status = [&](const std::string& host, const std::string& more) {
    TestClient client(address());
    client.send("GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n");
    return client.read().status;
  };
  const std::string browser = "Accept-Language: en\r\n";
  EXPECT_EQ(status("rebound.example.com:9400", ""), 200) << "Prometheus comes by any name";
  EXPECT_EQ(status("rebound.example.com:9400", browser), 403);
  EXPECT_EQ(status("rebound.example.com", "Sec-Fetch-Site: same-origin\r\n"), 403);
  EXPECT_EQ(status("rebound.example.com", "Origin: http://rebound.example.com\r\n"), 403);
  for (const char* host : {"gpus.example.org:9400", "127.0.0.1:9400", "[::1]:9400", "localhost", "node-7:9400"})
    EXPECT_EQ(status(host, browser), 200) << host;
  EXPECT_EQ(fetch(address(), "/").headers.at("cross-origin-resource-policy"), "same-origin");
  TestClient client(address());
  client.send("GET / HTTP/1.1\r\nHost: a.\"<b>" + std::string(1000, 'x') + ":9400\r\n" + browser + "\r\n");
  EXPECT_EQ(client.read().body, "host name \"a.\\\"<b>" + std::string(253 - 6, 'x') +
                                    "\" is not allowed for browsers; add it to --allowed-hosts\n");
}

TEST_F(ServerBasics, ListensOnSeveralAddresses) {
  if (!support::knows_localhost()) GTEST_SKIP() << "this machine does not know the name localhost";
  const std::string socket = directory_ / "http.sock";
  options_.listen_addresses = {"127.0.0.1:0", "localhost:0", ":0", "unix:" + socket};
  options_.metrics_path = "/gpu";
  start();
  const auto addresses = server_->addresses();
  ASSERT_EQ(addresses.size(), 4u);
  EXPECT_EQ(addresses[3], "unix:" + socket);
  for (const std::string& each : addresses) EXPECT_EQ(fetch(each, "/gpu").status, 200) << each;
  // Every interface means both families.
  EXPECT_EQ(fetch("127.0.0.1" + addresses[2].substr(addresses[2].rfind(':')), "/gpu").status, 200);
  server_->stop();
  EXPECT_FALSE(std::filesystem::exists(socket));
  EXPECT_FALSE(TestClient(addresses[0]).connected());
}

TEST_F(ServerBasics, ListensOnIpv6) {
  options_.listen_addresses = {"[::1]:0"};
  cell_.store(sample_snapshot(clock_.now().steady));
  auto server = Server::start(options_, cell_, clock_);
  if (!server) GTEST_SKIP() << "no IPv6 here: " << server.error().message;
  EXPECT_THAT((*server)->addresses().at(0), StartsWith("[::1]:"));
  EXPECT_EQ(fetch((*server)->addresses().at(0), "/metrics").status, 200);
}

TEST_F(ServerBasics, SaysWhyItCannotStart) {
  start();
  ServerOptions options;
  const auto complaint = [&] {
    auto server = Server::start(options, cell_, clock_);
    return server ? std::string() : server.error().message;
  };
  EXPECT_THAT(complaint(), HasSubstr("no listen address"));
  options.listen_addresses = {"127.0.0.1:0", address()};
  EXPECT_THAT(complaint(), AllOf(HasSubstr(address()), HasSubstr("already in use"), HasSubstr("--listen-address")));
  options.listen_addresses = {"nonsense"};
  EXPECT_THAT(complaint(), HasSubstr("\"nonsense\""));
  options.listen_addresses = {"127.0.0.1:0"};
  options.metrics_path = "metrics";
  EXPECT_THAT(complaint(), HasSubstr("must begin with /"));
  options.metrics_path = "/metrics";
  options.web_config_file = directory_ / "missing.yml";
  EXPECT_THAT(complaint(), AllOf(HasSubstr("missing.yml"), HasSubstr("No such file")));
  options.web_config_file = directory_.write("broken.yml", "nonsense: 1\n");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("broken.yml"), HasSubstr("\"nonsense\"")));
}

// None of them ends by itself within the test.
TEST_F(ServerBasics, StopsWithOpenConnections) {
  // Larger than the socket buffers, so that a client that does not read leaves a write unfinished.
  auto snapshot = std::make_shared<Snapshot>(*sample_snapshot(clock_.now().steady));
  snapshot->text = LazyText(std::string(32 << 20, 'x'));
  cell_.store(snapshot);
  start_empty();
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(std::make_unique<TestClient>(address()));
    ASSERT_TRUE(clients.back()->connected());
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(clients[i]->get("/healthz").status, 200);           // idle
  for (int i = 10; i < 20; ++i) ASSERT_TRUE(clients[i]->send("GET /metrics HTTP/1.1\r\n"));  // half a request
  for (int i = 20; i < 30; ++i) ASSERT_TRUE(clients[i]->send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));  // unread
  for (int i = 20; i < 30; ++i) ASSERT_TRUE(eventually([&] { return clients[i]->has_bytes(); })) << i;
  server_->stop();
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(clients[i]->closed()) << i;
  server_->stop();  // again does no harm
}

TEST_F(ServerBasics, ScrapersSeeWholeSnapshotsWhileTheWriterWrites) {
  start();
  std::atomic<bool> end{false};
  std::thread writer([&] {
    for (int i = 0; !end; ++i) {
      auto next = std::make_shared<Snapshot>(*sample_snapshot(clock_.now().steady));
      next->text = LazyText(std::string(100'000, static_cast<char>('a' + i % 26)));
      cell_.store(next);
    }
  });
  std::vector<std::thread> scrapers;
  std::atomic<int> torn{0};
  for (int t = 0; t < 4; ++t)
    scrapers.emplace_back([&] {
      TestClient client(address());
      for (int i = 0; i < 50; ++i) {
        const auto response = client.get("/metrics", i % 2 == 0 ? "Accept-Encoding: gzip\r\n" : "");
        const std::string text = i % 2 == 0 ? gunzip(response.body) : response.body;
        if (response.status != 200 || text.empty() || (text[0] != '#' && text != std::string(100'000, text[0]))) ++torn;
      }
    });
  for (auto& scraper : scrapers) scraper.join();
  end = true;
  writer.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace gpuledger::http
