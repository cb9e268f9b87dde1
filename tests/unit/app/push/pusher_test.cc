// SPDX-License-Identifier: Apache-2.0
#include "app/push/pusher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <future>
#include <mutex>

#include "received.h"
#include "support/eventually.h"
#include "unit/expose/node_example.h"
#include "unit/http/certificates.h"
#include "unit/http/temporary_directory.h"
#include "unit/net/fake_server.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using net::FakeServer;
using net::http_answer;
using ::testing::HasSubstr;
using Connection = FakeServer::Connection;
using Request = FakeServer::Request;

constexpr int64_t kAt = 1'700'000'000'000;

// Takes requests as Prometheus does: a sample that it has already is taken again without a word.
class Receiver {
 public:
  void take(const Request& request) {
    const std::lock_guard lock(mutex_);
    const Received block = read_block(request.body);
    times_.push_back(block.begin()->second.at_ms);
    for (const auto& [labels, sample] : block) samples_[{labels, sample.at_ms}] = sample.bits;
  }
  std::vector<int64_t> times() const {
    const std::lock_guard lock(mutex_);
    return times_;
  }
  size_t samples() const {
    const std::lock_guard lock(mutex_);
    return samples_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int64_t> times_;
  std::map<std::pair<Labels, int64_t>, uint64_t> samples_;
};

class PusherTest : public ::testing::Test {
 protected:
  void listen(FakeServer::Handler handler, std::optional<http::Identity> tls = std::nullopt) {
    const std::string scheme = tls ? "https" : "http";
    server_ = FakeServer::on_loopback(std::move(handler), std::move(tls));
    options_.receiver.url = *parse_http_url(scheme + "://127.0.0.1:" + std::to_string(server_->port()) + "/write?a=1");
    options_.receiver.answer_within = 1min;
    options_.patience_with_disk = 1min;
    options_.pace = {10ms, 20ms, 1min};
  }
  void open() {
    auto pusher = Pusher::open(options_);
    ASSERT_TRUE(pusher.ok()) << pusher.error().message;
    pusher_ = *std::move(pusher);
  }
  static std::shared_ptr<const Cycle> cycle(int64_t at_ms) {
    auto made = std::make_shared<Cycle>(expose::node_example());
    made->batch.at.wall = std::chrono::milliseconds(at_ms);
    return made;
  }
  void post(int64_t at_ms) { pusher_->post(cycle(at_ms), shown_); }
  SourceHealth health() const { return pusher_->health().front(); }
  bool all_sent() const { return pusher_->stats().sent > 0 && pusher_->stats().waiting == 0; }
  void fails_with(const std::string& code) {
    EXPECT_TRUE(eventually([&] { return health().errors.contains(code); })) << code;
    EXPECT_FALSE(health().up);
  }

  http::TemporaryDirectory folder_;
  PushOptions options_;
  Pusher::ShownOptions shown_ = std::make_shared<const expose::ExposeOptions>(expose::example_options());
  Receiver receiver_;
  std::unique_ptr<FakeServer> server_;
  std::unique_ptr<Pusher> pusher_;
};

TEST_F(PusherTest, SendsSnapshotsInOrder) {
  listen([&](const Request& request, Connection& connection) {
    receiver_.take(request);
    connection.send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  options_.receiver.credentials.user_password = "ann:";
  options_.receiver.credentials.password_file = folder_.write("password", "secret\n");
  options_.receiver.headers = {{"X-Scope-OrgID", "east"}};
  open();
  for (int i = 0; i < 3; ++i) post(kAt + i);
  ASSERT_TRUE(eventually([&] { return receiver_.times().size() == 3 && all_sent(); }));
  EXPECT_THAT(receiver_.times(), ::testing::ElementsAre(kAt, kAt + 1, kAt + 2));
  const Request request = server_->requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/write?a=1");
  EXPECT_EQ(request.headers.at("content-encoding"), "snappy");
  EXPECT_EQ(request.headers.at("content-type"), "application/x-protobuf");
  EXPECT_EQ(request.headers.at("x-prometheus-remote-write-version"), "0.1.0");
  EXPECT_EQ(request.headers.at("x-scope-orgid"), "east");
  EXPECT_EQ(request.headers.at("authorization"), "Basic YW5uOnNlY3JldA==");
  const PushStats stats = pusher_->stats();
  EXPECT_EQ(stats.sent, receiver_.samples());
  EXPECT_EQ(stats.rejected, 0u);
  EXPECT_EQ(stats.waiting_bytes, 0u);
  EXPECT_TRUE(stats.last_success);
  EXPECT_FALSE(stats.oldest_waiting);
  EXPECT_TRUE(health().up);
}

TEST_F(PusherTest, OverTlsWithAToken) {
  const http::Identity authority = http::make_authority("the receiver's");
  const http::Identity identity = http::make_certificate("receiver", authority, "IP:127.0.0.1");
  listen(
      [&](const Request& request, Connection& connection) {
        if (request.headers.at("authorization") == "Bearer new") receiver_.take(request);
        connection.send(http_answer(request.headers.at("authorization") == "Bearer new" ? 200 : 401, "who?"));
      },
      identity);
  options_.receiver.credentials.token_file = folder_.write("token", "old");
  options_.receiver.ca_file = folder_.write("ca.pem", authority.cert);
  open();
  post(kAt);
  fails_with("http_401");
  EXPECT_THAT(health().reason, HasSubstr("/write: answers 401: who?; check user, password, token and tenant"));
  EXPECT_EQ(pusher_->stats().rejected, 0u) << "a wrong token says nothing of the samples";
  folder_.write("token", "new");
  EXPECT_TRUE(eventually([&] { return all_sent(); }));
}

// A receiver that is away, overloaded or gone after it took the samples: all are sent until it says so, and nothing
// counts twice.
TEST_F(PusherTest, WhatFailsIsSentAgain) {
  std::atomic<int> turn{0};
  listen([&](const Request& request, Connection& connection) {
    switch (turn++) {
      case 0: connection.send(http_answer(500, "no\nmore")); break;
      case 1: connection.send(http_answer(503, "", "Retry-After: 0\r\n")); break;
      case 2: receiver_.take(request); break;                                      // hangs up without an answer
      case 3: receiver_.take(request), connection.send("HTTP/1.1 204 No"); break;  // and within it
      case 4: connection.send(http_answer(302, "", "Location: /elsewhere\r\n")); break;
      default: receiver_.take(request), connection.send(http_answer(200, "")); break;
    }
  });
  open();
  post(kAt);
  post(kAt + 1);
  ASSERT_TRUE(eventually([&] { return receiver_.times().size() == 4 && all_sent(); }));
  EXPECT_THAT(receiver_.times(), ::testing::ElementsAre(kAt, kAt, kAt, kAt + 1));
  EXPECT_EQ(pusher_->stats().sent, receiver_.samples());
  const auto errors = health().errors;
  for (const char* code : {"http_500", "http_503", "unavailable", "http_302"}) {
    EXPECT_TRUE(errors.contains(code)) << code;
  }
}

// It took the samples all the same, perhaps more than once on a machine where every answer is slow.
TEST_F(PusherTest, WhatIsAnsweredTooLateIsSentAgain) {
  std::atomic<int> turn{0};
  listen([&](const Request& request, Connection& connection) {
    receiver_.take(request);
    if (turn++ == 0) {
      connection.wait_for_hangup();
    } else {
      connection.send(http_answer(200, ""));
    }
  });
  options_.receiver.answer_within = 300ms;
  open();
  post(kAt);
  ASSERT_TRUE(eventually([&] { return all_sent(); }));
  EXPECT_TRUE(health().errors.contains("timeout"));
  EXPECT_GE(receiver_.times().size(), 2u);
  EXPECT_EQ(pusher_->stats().sent, receiver_.samples());
}

TEST_F(PusherTest, RetryAfterIsKept) {
  listen([&](const Request& request, Connection& connection) {
    receiver_.take(request);
    connection.send(receiver_.times().size() == 1 ? http_answer(429, "slowly", "Retry-After: 1\r\n")
                                                  : http_answer(200, ""));
  });
  open();
  const auto begin = std::chrono::steady_clock::now();
  post(kAt);
  ASSERT_TRUE(eventually([&] { return all_sent(); }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(receiver_.times().size(), 2u);
}

// Otherwise the pauses would grow to the longest, with one request between two of them, and the queue without end.
TEST_F(PusherTest, AReceiverThatFailsEverySecondTimeGetsAll) {
  std::atomic<int> turn{0};
  listen([&](const Request& request, Connection& connection) {
    const bool taken = turn++ % 2 != 0;
    if (taken) receiver_.take(request);
    connection.send(http_answer(taken ? 200 : 503, ""));
  });
  options_.pace = {10ms, 1min, 2min};
  const size_t series = expose::remote_write_series(*cycle(kAt), *shown_, {}).size();
  open();
  for (size_t i = 1; i <= 14; ++i) {
    post(kAt + static_cast<int64_t>(i));
    const auto written = [&, stats = PushStats()]() mutable {
      stats = pusher_->stats();
      return stats.waiting + stats.sent == i * series;
    };
    ASSERT_TRUE(eventually(written));
  }
  EXPECT_TRUE(eventually([&] { return all_sent(); })) << "14 pauses that double are 140 s";
  EXPECT_GE(receiver_.times().size(), 14u);
}

TEST_F(PusherTest, WhatIsRefusedIsDropped) {
  listen([&](const Request& request, Connection& connection) {
    receiver_.take(request);
    connection.send(receiver_.times().size() <= 2 ? http_answer(400, "out of order sample") : http_answer(200, ""));
  });
  open();
  for (int i = 0; i < 3; ++i) post(kAt + i);
  ASSERT_TRUE(eventually([&] { return all_sent(); }));
  EXPECT_THAT(receiver_.times(), ::testing::ElementsAre(kAt, kAt + 1, kAt + 2));
  const PushStats stats = pusher_->stats();
  EXPECT_EQ(stats.rejected, 2 * stats.sent);
  EXPECT_EQ(health().errors.at("http_400"), 2u);
  EXPECT_TRUE(health().up);
}

TEST_F(PusherTest, TheQueueOutlivesTheProgram) {
  std::atomic<bool> away{true};
  listen([&](const Request& request, Connection& connection) {
    if (!away) receiver_.take(request);
    connection.send(http_answer(away ? 503 : 200, ""));
  });
  options_.queue_folder = folder_ / "queue";
  open();
  for (int i = 0; i < 3; ++i) post(kAt + i);
  const size_t series = expose::remote_write_series(*cycle(kAt), *shown_, {}).size();
  ASSERT_TRUE(eventually([&] { return pusher_->stats().waiting == 3 * series; }));
  EXPECT_EQ(pusher_->stats().oldest_waiting, 1ms * kAt);
  fails_with("http_503");
  pusher_.reset();  // as kill -9: no last words
  open();
  post(kAt + 10);
  ASSERT_TRUE(eventually([&] { return pusher_->stats().waiting == 4 * series; }));
  away = false;
  ASSERT_TRUE(eventually([&] { return all_sent(); }));
  const auto times = receiver_.times();
  EXPECT_EQ(times, (std::vector<int64_t>{kAt, kAt + 1, kAt + 2, kAt + 10}));
}

TEST_F(PusherTest, TheEndIsSentToo) {
  listen([&](const Request& request, Connection& connection) {
    receiver_.take(request);
    connection.send(http_answer(receiver_.times().size() == 1 ? 500 : 200, ""));
  });
  options_.pace = {1h, 1h, 2h};
  open();
  post(kAt);
  fails_with("http_500");  // now it waits for an hour
  pusher_->finish(cycle(kAt + 5), shown_, 1min);
  EXPECT_THAT(receiver_.times(), ::testing::ElementsAre(kAt, kAt, kAt + 5, kAt + 6));
  EXPECT_EQ(pusher_->stats().waiting, 0u);
  post(kAt + 20);
  EXPECT_EQ(receiver_.times().size(), 4u);
}

// A block that the disk did not take is lost at the end. The limit on files stands for a full disk. The receiver asks
// for more time than there is, so that the end is not waited for.
TEST_F(PusherTest, TheEndSaysWhatIsLost) {
  std::signal(SIGXFSZ, SIG_IGN);
  listen(
      [&](const Request&, Connection& connection) { connection.send(http_answer(503, "", "Retry-After: 3600\r\n")); });
  options_.queue_folder = folder_ / "queue";
  open();
  const size_t series = expose::remote_write_series(*cycle(kAt), *shown_, {}).size();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  post(kAt);
  const bool queued = eventually([&] { return pusher_->stats().waiting == series; });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(queued);
  post(kAt + 1);
  ASSERT_TRUE(eventually([&] { return pusher_->stats().waiting == 2 * series; }));
  testing::internal::CaptureStderr();
  pusher_->finish(nullptr, nullptr, 1min);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("they are lost\" samples=" + std::to_string(series) + "\n"));
  const size_t kept = pusher_->stats().waiting - series;
  EXPECT_GE(kept, series);
  EXPECT_THAT(said, HasSubstr("they stay in the queue\" samples=" + std::to_string(kept) + "\n"));
}

TEST_F(PusherTest, WhatTheReceiverSaysCannotChangeTheScreen) {
  listen([&](const Request&, Connection& connection) {
    connection.send(http_answer(503, "bad\x1b[2J \xff\xfe" + std::string(300, 'w') + "\nmore"));
  });
  open();
  post(kAt);
  fails_with("http_503");
  EXPECT_THAT(health().reason, HasSubstr("answers 503: bad[2J \xef\xbf\xbdwww"));
  EXPECT_LT(health().reason.size(), 300u);
}

// As gpu_ledger_source_up falls, the JSON and the page say what to do.
TEST_F(PusherTest, EveryReasonNamesARemedy) {
  const auto reason_with = [&](auto change) {
    ReceiverOptions receiver = options_.receiver;
    change(receiver);
    return post_block(receiver, "", net::Interrupt()).reason;
  };
  const auto status = [&](const char* target) {
    return reason_with([&](ReceiverOptions& receiver) { receiver.url.target = target; });
  };
  listen([](const Request& request, Connection& connection) {
    connection.send(http_answer(std::stoi(request.target.substr(1)), "no"));
  });
  EXPECT_THAT(status("/404"), HasSubstr("answers 404: no; check the path, and that the receiver takes remote write"));
  EXPECT_THAT(status("/403"), HasSubstr("answers 403: no; check user, password, token and tenant"));
  EXPECT_THAT(status("/413"),
              HasSubstr("answers 413: no; a snapshot is one request: let the receiver take larger ones"));
  EXPECT_THAT(status("/429"), HasSubstr("answers 429: no; raise its limits"));
  EXPECT_THAT(status("/302"), HasSubstr("answers 302: no; write the address that it leads to in --push-url"));
  EXPECT_THAT(status("/500"), HasSubstr("answers 500: no; its log says why"));
  const std::string none = folder_ / "none";
  EXPECT_THAT(reason_with([&](ReceiverOptions& receiver) {
                receiver.credentials = {"ann:", none, ""};
              }),
              HasSubstr(": --push-password-file: cannot read " + none));
  EXPECT_THAT(reason_with([&](ReceiverOptions& receiver) { receiver.credentials.token_file = none; }),
              HasSubstr(": --push-bearer-token-file: cannot read " + none));
  const auto tls_with = [&](const std::string& authorities) {
    return reason_with([&](ReceiverOptions& receiver) {
      receiver.url.tls = true;
      receiver.ca_file = authorities;
    });
  };
  const std::string ca = folder_.write("ca.pem", http::make_authority("some").cert);
  EXPECT_THAT(tls_with(none), HasSubstr(": --push-ca-file: cannot read " + none));
  listen([](const Request&, Connection&) {}, http::make_certificate("other", http::make_authority("other"), "DNS:b"));
  EXPECT_THAT(tls_with(ca), HasSubstr("--push-ca-file=FILE names its CA or the certificate itself"));
  EXPECT_THAT(reason_with([](ReceiverOptions& receiver) { receiver.url.tls = false; }),
              HasSubstr("if it uses TLS, write https: in --push-url"));
  server_.reset();
  EXPECT_THAT(status("/404"), HasSubstr("refused; check address, path, firewall and whether it runs"));
}

TEST_F(PusherTest, TheEndDoesNotWaitForever) {
  std::promise<void> end;
  const auto ended = end.get_future().share();
  listen([ended](const Request&, Connection&) { ended.wait(); });
  options_.receiver.answer_within = 1h;
  options_.queue_folder = folder_ / "queue";
  open();
  post(kAt);
  ASSERT_TRUE(eventually([&] { return server_->requests().size() == 1; }));
  pusher_->finish(cycle(kAt + 5), shown_, 100ms);
  EXPECT_GT(pusher_->stats().waiting, 0u);
  end.set_value();  // until now the receiver had not answered
}

}  // namespace
}  // namespace gpuledger::app
