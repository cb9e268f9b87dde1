// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <cstdlib>

#include "support/localhost.h"
#include "support/thread_limit.h"
#include "unit/http/temporary_directory.h"
#include "unit/net/fake_server.h"

namespace gpuledger::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using Connection = FakeServer::Connection;
using Request = FakeServer::Request;

FakeServer::Handler says(std::string bytes) {
  return [bytes = std::move(bytes)](const Request&, Connection& connection) { connection.send(bytes); };
}

class HttpClientTest : public ::testing::Test {
 protected:
  Peer plain(const FakeServer& server) { return {"", "127.0.0.1", server.port(), std::nullopt}; }
  Peer secure(const FakeServer& server, const std::string& host = "127.0.0.1") {
    return {"", host, server.port(), TlsTrust{folder_.write("ca.crt", authority_.cert), false}};
  }
  http::Identity certificate(const std::string& names) { return http::make_certificate("server", authority_, names); }

  Result<HttpReply> get(const Peer& peer, const HttpRequest& request) {
    return HttpClient(peer, "test/1", interrupt_).get(request);
  }
  Result<HttpReply> get(const Peer& peer) { return get(peer, patient()); }
  // No limit ends it in the time of a test.
  static HttpRequest patient() {
    HttpRequest request;
    request.target = "/x?y=1";
    request.connect_within = request.head_within = request.longest_silence = request.whole_within = 5h;
    return request;
  }
  // What a server that says these bytes is told to have done wrong.
  std::string complaint(const std::string& bytes, HttpRequest request = patient()) {
    const auto server = FakeServer::on_loopback(says(bytes));
    const auto reply = get(plain(*server), request);
    return reply ? "none" : std::string(code_name(reply.error().code)) + ": " + reply.error().message;
  }

  http::TemporaryDirectory folder_;
  http::Identity authority_ = http::make_authority("the cluster");
  Interrupt interrupt_;
};

TEST_F(HttpClientTest, AsksOnEveryKindOfConnection) {
  if (!support::knows_localhost()) GTEST_SKIP() << "this machine does not know the name localhost";
  const auto tcp = FakeServer::on_loopback(says(http_answer(200, "tcp")));
  const auto tls = FakeServer::on_loopback(says(http_answer(200, "tls")), certificate("IP:127.0.0.1"));
  const auto named = FakeServer::on_loopback(says(http_answer(200, "named")), certificate("DNS:localhost"));
  const auto unix_socket = FakeServer::on_unix(folder_ / "s", says(http_answer(200, "unix")));
  EXPECT_EQ(get(plain(*tcp))->body, "tcp");
  EXPECT_EQ(get(secure(*tls))->body, "tls");
  EXPECT_EQ(get(secure(*named, "localhost"))->body, "named");
  EXPECT_EQ(get({folder_ / "s", "", 0, std::nullopt})->body, "unix");

  const Request request = tcp->requests().at(0);
  EXPECT_EQ(request.target, "/x?y=1");
  EXPECT_EQ(request.headers.at("host"), "127.0.0.1:" + std::to_string(tcp->port()));
  EXPECT_EQ(request.headers.at("user-agent"), "test/1");
  EXPECT_EQ(request.headers.at("connection"), "close");
  EXPECT_FALSE(request.headers.contains("accept-encoding"));
  EXPECT_EQ(unix_socket->requests().at(0).headers.at("host"), "localhost");
}

TEST_F(HttpClientTest, SendsABody) {
  const auto plain_server = FakeServer::on_loopback(says("HTTP/1.1 204 No Content\r\n\r\n"));
  const auto tls = FakeServer::on_loopback(says(http_answer(200, "taken")), certificate("IP:127.0.0.1"));
  const std::string body = std::string("\0\r\n\r\n", 5) + std::string(3 << 20, 'x');  // more than a socket buffers
  HttpRequest request = patient();
  request.headers = {{"Content-Type", "application/x-protobuf"}};
  const auto none = HttpClient(plain(*plain_server), "test/1", interrupt_).post(request, body);
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_EQ(none->status, 204u);
  EXPECT_EQ(HttpClient(secure(*tls), "test/1", interrupt_).post(request, body)->status, 200u);
  for (const auto* server : {plain_server.get(), tls.get()}) {
    const Request got = server->requests().at(0);
    EXPECT_EQ(got.method, "POST");
    EXPECT_EQ(got.headers.at("content-type"), "application/x-protobuf");
    EXPECT_EQ(got.body, body);
  }
  EXPECT_TRUE(HttpClient(plain(*plain_server), "test/1", interrupt_).post(request, "").ok());
  EXPECT_EQ(plain_server->requests().at(1).headers.at("content-length"), "0");
}

TEST_F(HttpClientTest, KeepsOnlyTheReasonOfAnAnswerToAPost) {
  // "200" or "500: the reason".
  const auto post = [&](const FakeServer::Handler& handler, uint64_t largest = 64 << 20) {
    const auto server = FakeServer::on_loopback(handler);
    HttpRequest request = patient();
    request.largest_body = largest;
    const auto reply = HttpClient(plain(*server), "test/1", interrupt_).post(request, "body");
    if (!reply.ok()) return reply.error().message;
    return std::to_string(reply->status) + (reply->body.empty() ? "" : ": " + reply->body);
  };
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(post(says(http_answer(200, large))), "200");
  EXPECT_EQ(post(says(http_answer(202, large))), "202");
  EXPECT_EQ(post(says(http_answer(500, large))), "500: " + std::string(800, 'x'));
  EXPECT_EQ(post(says(http_answer(400, "why")), 1), "400: why");
  EXPECT_EQ(post(says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc")), "200") << "cut";
  EXPECT_EQ(post(says(http_answer(200, "\x1f\x8b", "Content-Encoding: gzip\r\n"))), "200");
  EXPECT_EQ(post(says(http_answer(500, "\x1f\x8b", "Content-Encoding: gzip\r\n"))), "500");
  EXPECT_EQ(post(says("HTTP/1.1 100 Continue\r\n\r\n")), "connection cut: it ended within an answer");
  const auto endless = [](const Request&, Connection& connection) {
    connection.send(chunked_head());
    while (connection.send(chunk(std::string(10'000, 'x')))) {}
  };
  EXPECT_EQ(post(endless, 1 << 20), "200");
}

TEST_F(HttpClientTest, WaitsForTheFinalAnswer) {
  const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nRetry-After: 9\r\nContent-Encoding: br\r\n\r\n";
  const std::string interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + hints;
  const auto all = FakeServer::on_loopback(says(interim + http_answer(200, "final")));
  const auto bytes = FakeServer::on_loopback([&](const Request&, Connection& connection) {
    for (const char c : interim + http_answer(429, "no", "Retry-After: 7\r\n")) connection.send(std::string(1, c));
  });
  const auto reply = get(plain(*all));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 200u);
  EXPECT_EQ(reply->body, "final");
  EXPECT_EQ(reply->retry_after, "");
  EXPECT_EQ(get(plain(*bytes))->retry_after, "7");
  EXPECT_EQ(HttpClient(plain(*bytes), "test/1", interrupt_).post(patient(), "body")->body, "no");
  EXPECT_EQ(get(plain(*FakeServer::on_loopback(says("HTTP/1.1 101 Switching Protocols\r\n\r\n"))))->status, 101u);

  std::string many, endless;
  for (int i = 0; i < 10; ++i) many += hints;
  EXPECT_EQ(complaint(many + http_answer(200, "")), "none");
  EXPECT_THAT(complaint(many + hints + http_answer(200, "")),
              HasSubstr("malformed: not a proper HTTP answer: endless"));
  for (int i = 0; i < 10; ++i) endless += "HTTP/1.1 103 Early Hints\r\nX: " + std::string(8000, 'x') + "\r\n\r\n";
  EXPECT_THAT(complaint(endless + http_answer(200, "")), HasSubstr("malformed: not a proper HTTP answer: endless"));
  EXPECT_THAT(complaint(interim), HasSubstr("connection cut"));
}

TEST_F(HttpClientTest, WritesIpv6InBrackets) {
  EXPECT_EQ((Peer{"", "fd00::1", 443, TlsTrust{}}.text()), "https://[fd00::1]:443");
  EXPECT_EQ((Peer{"", "fe80::1%eth0", 9400, std::nullopt}.authority()), "[fe80::1]:9400");
  EXPECT_EQ((Peer{"", "10.0.0.1", 443, std::nullopt}.text()), "http://10.0.0.1:443");
  EXPECT_EQ((Peer{"/run/x.sock", "", 0, std::nullopt}.text()), "unix:/run/x.sock");
}

TEST_F(HttpClientTest, ReadsEveryKindOfBody) {
  const std::string large(300'000, 'q');
  const auto chunked = FakeServer::on_loopback([&](const Request&, Connection& connection) {
    connection.send(chunked_head());
    for (size_t i = 0; i < large.size(); i += 1000) connection.send(chunk(large.substr(i, 1000)));
    connection.send(kLastChunk);
  });
  EXPECT_EQ(get(plain(*chunked))->body, large);
  const auto until_the_end = FakeServer::on_loopback(says("HTTP/1.0 200 OK\r\n\r\n" + large));
  EXPECT_EQ(get(plain(*until_the_end))->body, large);
  const auto bytewise = FakeServer::on_loopback([&](const Request&, Connection& connection) {
    for (const char c : chunked_head() + chunk("ab") + chunk("c") + kLastChunk) connection.send(std::string(1, c));
  });
  EXPECT_EQ(get(plain(*bytewise))->body, "abc");
}

TEST_F(HttpClientTest, UnpacksGzipAndStopsABomb) {
  const std::string large(1'000'000, 'q');
  HttpRequest request = patient();
  request.accept_gzip = true;
  const std::string packed = gzipped(large);
  const auto server = FakeServer::on_loopback(says(http_answer(200, packed, "Content-Encoding: gzip\r\n")));
  const auto reply = get(plain(*server), request);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, large);
  EXPECT_EQ(server->requests().at(0).headers.at("accept-encoding"), "gzip");

  request.largest_body = 999'999;
  EXPECT_THAT(complaint(http_answer(200, packed, "Content-Encoding: gzip\r\n"), request),
              HasSubstr("more than 999999"));
  request.largest_body = 10'000'000;
  const std::string half = packed.substr(0, packed.size() / 2);
  EXPECT_THAT(complaint(http_answer(200, half, "Content-Encoding: gzip\r\n"), request), HasSubstr("without its end"));
  EXPECT_THAT(complaint(http_answer(200, "plain", "Content-Encoding: gzip\r\n"), request), HasSubstr("not gzip"));
  EXPECT_THAT(complaint(http_answer(200, packed, "Content-Encoding: gzip\r\n")), HasSubstr("not asked for"));
}

TEST_F(HttpClientTest, HandsTheBodyOnAsItComes) {
  std::atomic<int> pieces{0};
  const auto server = FakeServer::on_loopback([&](const Request&, Connection& connection) {
    connection.send(chunked_head());
    for (int i = 0; i < 3; ++i) {
      if (!eventually([&] { return pieces == i + 1; })) return;  // the one before has arrived
      connection.send(chunk("event"));
    }
    connection.wait_for_hangup();
  });
  std::string seen;
  const auto reply = HttpClient(plain(*server), "t", interrupt_).get(patient(), [&](std::string_view bytes) {
    seen += bytes.empty() ? "<head>" : std::string(bytes);
    return ++pieces < 4;
  });
  ASSERT_TRUE(reply);
  EXPECT_EQ(seen, "<head>eventeventevent");
}

TEST_F(HttpClientTest, TellsOfAPauseOnce) {
  std::atomic<int> pauses{0};
  std::string seen;
  const auto note = [&](std::string_view bytes) {
    seen += bytes.empty() ? "." : std::string(bytes);
    if (bytes.empty()) ++pauses;
    return true;
  };
  const auto server = FakeServer::on_loopback([&](const Request&, Connection& connection) {
    connection.send(chunked_head() + chunk("a"));
    if (!eventually([&] { return pauses == 2; })) return;  // one after the head, one after "a"
    connection.send(chunk("b"));
    if (!eventually([&] { return pauses == 3; })) return;
    connection.send(kLastChunk);
  });
  HttpRequest request = patient();
  request.pause = 30ms;
  ASSERT_TRUE(HttpClient(plain(*server), "t", interrupt_).get(request, note));
  EXPECT_EQ(seen, ".a.b.");

  const auto silent = FakeServer::on_loopback([](const Request&, Connection& connection) {
    connection.send(chunked_head() + chunk("a"));
    connection.wait_for_hangup();
  });
  seen.clear();
  request.longest_silence = 300ms;  // ten times the pause
  const auto reply = HttpClient(plain(*silent), "t", interrupt_).get(request, note);
  EXPECT_EQ(reply ? Code::kInternal : reply.error().code, Code::kTimeout);
  EXPECT_EQ(seen, ".a.");
}

TEST_F(HttpClientTest, BoundsWhatAServerMaySay) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  EXPECT_THAT(complaint(head + "X: " + std::string(100'000, 'a') + "\r\n\r\n"), HasSubstr("malformed"));
  std::string many = head;
  for (int i = 0; i < 10'000; ++i) many += "X-" + std::to_string(i) + ": a\r\n";
  EXPECT_THAT(complaint(many + "\r\n"), HasSubstr("malformed"));
  EXPECT_THAT(complaint(chunked_head() + std::string(100'000, '1')), HasSubstr("malformed"));
  EXPECT_THAT(complaint(chunked_head() + "5;" + std::string(200'000, 'x')), HasSubstr("malformed"));
  HttpRequest small = patient();
  small.largest_body = 1000;
  EXPECT_THAT(complaint(http_answer(200, std::string(1001, 'x')), small), HasSubstr("more than 1000 bytes"));
  const auto endless = FakeServer::on_loopback([](const Request&, Connection& connection) {
    connection.send(chunked_head());
    while (connection.send(chunk(std::string(10'000, 'x')))) {}
  });
  EXPECT_THAT(get(plain(*endless), small).error().message, HasSubstr("more than 1000 bytes"));
}

TEST_F(HttpClientTest, RefusesWhatIsNoHttp) {
  for (const std::string& bytes : {std::string("SSH-2.0-OpenSSH\r\n"), std::string("HTTP/1.1 abc OK\r\n\r\n"),
                                   std::string("HTTP/9.9 200 OK\r\n\r\n"), std::string(200'000, '\0')})
    EXPECT_THAT(complaint(bytes), HasSubstr("malformed")) << bytes;
  EXPECT_THAT(complaint(""), HasSubstr("unavailable: connection cut"));
  EXPECT_THAT(complaint(std::string("\x15\x03\x01\0\x02\x02", 6)), HasSubstr("connection cut"));
  EXPECT_THAT(complaint("HTTP/1.1 200 OK\r\nContent-Le"), HasSubstr("connection cut"));
  EXPECT_THAT(complaint("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"), HasSubstr("connection cut"));
  EXPECT_THAT(complaint(chunked_head() + chunk("abc")), HasSubstr("connection cut"));
}

TEST_F(HttpClientTest, DoesNotFollowRedirectsOrProxies) {
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  ::setenv("HTTPS_PROXY", "http://127.0.0.1:1", 1);
  const auto server = FakeServer::on_loopback(says(http_answer(302, "", "Location: /elsewhere\r\n")));
  const auto reply = get(plain(*server));
  ::unsetenv("http_proxy");
  ::unsetenv("HTTPS_PROXY");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 302u);
  EXPECT_EQ(server->requests().size(), 1u);
}

TEST_F(HttpClientTest, GivesTheReasonOfARefusal) {
  const auto server = FakeServer::on_loopback(says(http_answer(429, std::string(100'000, 'r'), "Retry-After: 7\r\n")));
  const auto reply = get(plain(*server));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 429u);
  EXPECT_EQ(reply->retry_after, "7");
  EXPECT_EQ(reply->body, std::string(64 << 10, 'r'));
}

TEST_F(HttpClientTest, TrustsOnlyTheGivenAuthorityAndName) {
  if (!support::knows_localhost()) GTEST_SKIP() << "this machine does not know the name localhost";
  const auto stranger = http::make_authority("somebody else");
  const auto wrong_ca =
      FakeServer::on_loopback(says(http_answer(200, "x")), http::make_certificate("server", stranger, "IP:127.0.0.1"));
  EXPECT_THAT(get(secure(*wrong_ca)).error().message, HasSubstr("certificate is refused"));
  EXPECT_TRUE(wrong_ca->requests().empty()) << "the request must not be sent";
  const auto wrong_address = FakeServer::on_loopback(says(http_answer(200, "x")), certificate("IP:127.0.0.2"));
  EXPECT_THAT(get(secure(*wrong_address)).error().message, HasSubstr("certificate is refused"));
  const auto wrong_name = FakeServer::on_loopback(says(http_answer(200, "x")), certificate("DNS:other,IP:127.0.0.1"));
  EXPECT_THAT(get(secure(*wrong_name, "localhost")).error().message, HasSubstr("certificate is refused"));

  Peer careless = secure(*wrong_ca);
  careless.tls->skip_verify = true;
  EXPECT_EQ(get(careless)->body, "x");
  Peer no_ca = secure(*wrong_ca);
  no_ca.tls->ca_file = folder_ / "missing";
  EXPECT_EQ(get(no_ca).error().code, Code::kNotFound);
  no_ca.tls->ca_file = folder_.write("empty", "nothing");
  EXPECT_THAT(get(no_ca).error().message, HasSubstr("holds no certificate"));
}

TEST_F(HttpClientTest, RefusesOldTls) {
  const auto old = FakeServer::on_loopback(says(http_answer(200, "x")), certificate("IP:127.0.0.1"), TLS1_1_VERSION);
  EXPECT_THAT(get(secure(*old)).error().message, HasSubstr("TLS"));
  const auto today = FakeServer::on_loopback(says(http_answer(200, "x")), certificate("IP:127.0.0.1"), TLS1_2_VERSION);
  EXPECT_EQ(get(secure(*today))->body, "x");
}

// Each server holds its connection, so that only the limit can end the request.
TEST_F(HttpClientTest, WaitsNoLongerThanItIsTold) {
  const auto outcome = [&](const Peer& peer, const HttpRequest& request) {
    const auto reply = get(peer, request);
    return reply ? Code::kInternal : reply.error().code;
  };
  const auto silent = FakeServer::on_loopback([](const Request&, Connection& c) { c.wait_for_hangup(); });
  HttpRequest request = patient();
  request.head_within = 100ms;
  EXPECT_EQ(outcome(plain(*silent), request), Code::kTimeout);

  const auto drip = FakeServer::on_loopback([](const Request&, Connection& connection) {
    connection.send("HTTP/1.1 200 OK\r\n");
    while (connection.send("X: y\r\n") && !connection.wait_for_hangup(10ms)) {}
  });
  EXPECT_EQ(outcome(plain(*drip), request), Code::kTimeout);

  const auto stuck = FakeServer::on_loopback([](const Request&, Connection& connection) {
    connection.send(chunked_head() + chunk("x"));
    connection.wait_for_hangup();
  });
  request = patient();
  request.longest_silence = 100ms;
  EXPECT_EQ(outcome(plain(*stuck), request), Code::kTimeout);

  const auto slow_body = FakeServer::on_loopback([](const Request&, Connection& connection) {
    connection.send(chunked_head());
    while (connection.send(chunk("x")) && !connection.wait_for_hangup(10ms)) {}
  });
  request = patient();
  request.whole_within = 200ms;
  EXPECT_EQ(outcome(plain(*slow_body), request), Code::kTimeout);

  // Accepts, but never says a word of TLS.
  const auto no_tls = FakeServer::on_loopback([](const Request&, Connection& c) { c.wait_for_hangup(); });
  request = patient();
  request.connect_within = 100ms;
  EXPECT_EQ(outcome(secure(*no_tls), request), Code::kTimeout);
}

// The servers go on for as long as the client is there, and no limit ends the request.
TEST_F(HttpClientTest, EndsWhenInterrupted) {
  const auto silent = FakeServer::on_loopback([](const Request&, Connection& c) { c.wait_for_hangup(); });
  const auto flood = FakeServer::on_loopback([](const Request&, Connection& connection) {
    connection.send(chunked_head());
    while (connection.send(chunk(std::string(10'000, 'x')))) {}
  });
  // Several times, because it may be interrupted just before it waits.
  for (const FakeServer* server : {silent.get(), silent.get(), silent.get(), silent.get(), flood.get()}) {
    const size_t asked = server->requests().size();
    std::stop_source stop;
    const Interrupt interrupt(stop.get_token());
    HttpRequest request = patient();
    request.largest_body = UINT64_MAX;
    std::atomic<int> pieces{0};
    std::thread asking([&] {
      const auto reply = HttpClient(plain(*server), "t", interrupt).get(request, [&](std::string_view) {
        ++pieces;
        return true;
      });
      EXPECT_FALSE(reply);
    });
    EXPECT_TRUE(eventually([&] { return server->requests().size() > asked; }));
    if (server == flood.get()) {
      EXPECT_TRUE(eventually([&] { return pieces > 10; }));
    }
    stop.request_stop();
    asking.join();
  }
}

TEST_F(HttpClientTest, SaysWhyItCannotConnect) {
  uint16_t port = 0;
  { port = FakeServer::on_loopback(says(""))->port(); }
  EXPECT_THAT(get({"", "127.0.0.1", port, std::nullopt}).error().message, HasSubstr("Connection refused"));
  EXPECT_EQ(get({folder_ / "none", "", 0, std::nullopt}).error().code, Code::kNotFound);
  EXPECT_EQ(get({std::string(200, 'x'), "", 0, std::nullopt}).error().code, Code::kMalformed);
  EXPECT_THAT(get({"", "no such name.invalid", 1, std::nullopt}).error().message, HasSubstr("host name"));
}

TEST_F(HttpClientTest, ANameThatNoThreadCanLookUpIsAnError) {
  EXPECT_TRUE(support::passes_without_threads([this] {
    const auto answer = get({"", "localhost", 1, std::nullopt});
    ASSERT_FALSE(answer.ok());
    EXPECT_THAT(answer.error().message, HasSubstr("host name: no thread can be made"));
  }));
}

}  // namespace
}  // namespace gpuledger::net
