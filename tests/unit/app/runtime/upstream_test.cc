// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/upstream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "support/eventually.h"
#include "support/manual_clock.h"
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

constexpr const char* kGood = "# TYPE dcgm_gpu_temp gauge\ndcgm_gpu_temp{gpu=\"0\",uuid=\"GPU-a\"} 33\n";

class UpstreamTest : public ::testing::Test {
 protected:
  UpstreamOptions quick(UpstreamOptions options) const {
    options.url_period = options.file_period = options.after_failure = 20ms;
    options.answer_within = answer_within_;
    return options;
  }
  void read_url(FakeServer::Handler handler) {
    server_ = FakeServer::on_loopback(std::move(handler));
    auto url = parse_http_url("http://127.0.0.1:" + std::to_string(server_->port()) + "/metrics?a=1");
    ASSERT_TRUE(url.ok());
    UpstreamOptions options;
    options.url = *url;
    upstream_ = std::make_unique<Upstream>(quick(options), clock_);
  }
  void read_file() {
    UpstreamOptions options;
    options.file = path_;
    upstream_ = std::make_unique<Upstream>(quick(options), clock_);
  }
  // Another file, written this long ago.
  void write(const std::string& text, Nanoseconds ago = 0ns) {
    const std::string beside = path_ + ".new";
    std::ofstream(beside) << text;
    set_age(beside, ago);
    std::filesystem::rename(beside, path_);
  }
  void set_age(const std::string& path, Nanoseconds ago) const {
    const Nanoseconds written = clock_.now().wall - ago;
    const auto seconds = std::chrono::floor<std::chrono::seconds>(written);
    const timespec time{seconds.count(), (written - seconds).count()};
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  auto view() const { return upstream_->view(clock_.now()); }
  std::string value() const {
    const auto text = view();
    return text ? text->families.at(0).series.at(0).value : "none";
  }
  SourceHealth health() const { return upstream_->health(); }
  bool is_down(const std::string& code) const { return !health().up && health().errors.contains(code); }

  http::TemporaryDirectory folder_;
  const std::string path_ = folder_ / "dcgm.prom";
  ManualClock clock_;
  Nanoseconds answer_within_ = 1min;
  std::unique_ptr<FakeServer> server_;
  std::unique_ptr<Upstream> upstream_;
};

TEST_F(UpstreamTest, ReadsAUrl) {
  read_url([](const Request&, Connection& connection) { connection.send(http_answer(200, kGood)); });
  ASSERT_TRUE(eventually([&] { return health().up; })) << health().reason;
  EXPECT_EQ(value(), "33");
  EXPECT_EQ(health().source, "dcgm-exporter");
  const auto request = server_->requests().at(0);
  EXPECT_EQ(request.target, "/metrics?a=1");
  EXPECT_THAT(request.headers.at("accept"), HasSubstr("0.0.4"));
}

TEST_F(UpstreamTest, ReadsAPackedAnswer) {
  read_url([](const Request&, Connection& connection) {
    connection.send(http_answer(200, net::gzipped(kGood), "Content-Encoding: gzip\r\n"));
  });
  ASSERT_TRUE(eventually([&] { return health().up; })) << health().reason;
  EXPECT_EQ(value(), "33");
}

TEST_F(UpstreamTest, BadLinesAreCountedAndTheOthersShown) {
  read_url([](const Request&, Connection& connection) {
    connection.send(http_answer(200, std::string("x N/A\ny{a=\"\\q\"} 1\ny{a=\"\\q\"} 1\n") + kGood));
  });
  ASSERT_TRUE(eventually([&] { return health().up; })) << health().reason;
  EXPECT_EQ(value(), "33");
  auto errors = health().errors;
  EXPECT_EQ(errors["line_escape"], 2 * errors["line_value"]);
  EXPECT_GT(errors["line_value"], 0u);
}

TEST_F(UpstreamTest, WhatCannotBeTrustedChangesNothingButTheHealth) {
  answer_within_ = 500ms;
  std::atomic<int> turn{0};
  read_url([&](const Request&, Connection& connection) {
    const std::string cut = std::string(kGood) + "dcgm_power_usage{gpu=\"0\"} 31";
    switch (turn.load()) {
      case 0: connection.send(http_answer(200, kGood)); break;
      case 1: connection.send(http_answer(200, cut)); break;
      case 2: connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + cut); break;
      case 3: connection.send(http_answer(200, std::string("\x1f\x8b\0\0\xff\n", 6))); break;
      case 4: connection.send(http_answer(500, "no")); break;
      case 5: connection.wait_for_hangup(); break;
      default: connection.send(http_answer(302, "", "Location: /elsewhere\r\n")); break;
    }
  });
  ASSERT_TRUE(eventually([&] { return health().up; })) << health().reason;
  const char* const kCodes[] = {"malformed", "unavailable", "malformed", "http_500", "timeout", "http_302"};
  for (int i = 0; i < 6; ++i) {
    const uint64_t before = health().errors[kCodes[i]];
    turn = i + 1;
    EXPECT_TRUE(eventually([&] { return !health().up && health().errors[kCodes[i]] > before + 1; }))
        << i << " " << health().reason;
    EXPECT_EQ(value(), "33") << i;
    EXPECT_THAT(health().reason, HasSubstr("http://127.0.0.1:")) << i;
  }
  turn = 0;
  EXPECT_TRUE(eventually([&] { return health().up; })) << health().reason;
}

TEST_F(UpstreamTest, WhatIsOldGoes) {
  std::atomic<bool> broken{false};
  read_url([&](const Request&, Connection& connection) {
    connection.send(broken ? http_answer(503, "") : http_answer(200, kGood));
  });
  ASSERT_TRUE(eventually([&] { return health().up; })) << health().reason;
  broken = true;
  ASSERT_TRUE(eventually([&] { return is_down("http_503"); }));
  clock_.advance(60s);
  EXPECT_EQ(value(), "33");
  clock_.advance(1s);
  EXPECT_EQ(value(), "none");
  broken = false;
  EXPECT_TRUE(eventually([&] { return value() == "33"; })) << health().reason;
}

TEST_F(UpstreamTest, ASlowAnswerHoldsUpNobody) {
  answer_within_ = 1h;
  std::promise<void> end;
  const auto ended = end.get_future().share();
  read_url([ended](const Request&, Connection&) { ended.wait(); });
  ASSERT_TRUE(eventually([&] { return server_->requests().size() == 1; }));
  EXPECT_EQ(value(), "none");
  EXPECT_FALSE(upstream_->wait(10ms));
  upstream_.reset();
  end.set_value();  // until now there was no answer
}

TEST_F(UpstreamTest, ReadsAFileAgainWhenItIsAnother) {
  read_file();
  ASSERT_TRUE(eventually([&] { return is_down("not_found"); }));
  EXPECT_THAT(health().reason, HasSubstr(path_));
  write(kGood);
  ASSERT_TRUE(eventually([&] { return health().up; })) << health().reason;
  EXPECT_EQ(value(), "33");
  write("dcgm_gpu_temp 34\n");
  EXPECT_TRUE(eventually([&] { return value() == "34"; }));
  write("dcgm_gpu_temp 3");
  EXPECT_TRUE(eventually([&] { return is_down("malformed"); }));
  EXPECT_EQ(value(), "34");
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  set_age(path_, 0s);
  const uint64_t before = health().errors["malformed"];
  EXPECT_TRUE(eventually([&] { return health().errors["malformed"] > before; })) << health().reason;
}

TEST_F(UpstreamTest, AFileThatNobodyWritesIsStale) {
  write(kGood);
  read_file();
  ASSERT_TRUE(eventually([&] { return health().up; })) << health().reason;
  clock_.advance(70s);
  EXPECT_EQ(value(), "none");
  EXPECT_TRUE(eventually([&] { return is_down("stale"); })) << health().reason;
  clock_.advance(-70s);
  EXPECT_TRUE(eventually([&] { return health().up; })) << health().reason;
  EXPECT_EQ(value(), "33");
}

TEST_F(UpstreamTest, AnOldFileIsNeverShown) {
  write(kGood, 2min);
  read_file();
  ASSERT_TRUE(upstream_->wait(1min));
  ASSERT_TRUE(is_down("stale")) << health().reason;
  EXPECT_EQ(value(), "none");
  EXPECT_THAT(health().reason, HasSubstr("ago"));
  set_age(path_, -1h);
  EXPECT_TRUE(eventually([&] { return health().reason.ends_with("in the future; check the clocks"); }))
      << health().reason;
  EXPECT_EQ(value(), "none");
}

// Its age counts, not when we came to read it.
TEST_F(UpstreamTest, AFileIsAsOldAsItSays) {
  write(kGood, 40s);
  read_file();
  ASSERT_TRUE(eventually([&] { return health().up; })) << health().reason;
  EXPECT_EQ(value(), "33");
  EXPECT_EQ(upstream_->view({clock_.now().steady + 30s, 0s}), nullptr);
}

TEST_F(UpstreamTest, AFifoIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  set_age(path_, 0s);
  read_file();
  EXPECT_TRUE(eventually([&] { return is_down("malformed"); })) << health().reason;
}

TEST(HttpUrl, Parts) {
  struct Row {
    const char* text;
    bool tls;
    const char* host;
    uint16_t port;
    const char* target;
  };
  for (const Row& row :
       {Row{"http://127.0.0.1:9400/metrics", false, "127.0.0.1", 9400, "/metrics"},
        Row{"http://dcgm", false, "dcgm", 80, "/"}, Row{"https://[::1]/m?x=1", true, "::1", 443, "/m?x=1"},
        Row{"http://[fd00::1]:80?x", false, "fd00::1", 80, "/?x"},
        Row{"http://[fe80::1%25eth0]:9400/", false, "fe80::1%eth0", 9400, "/"},
        Row{"http://[fe80::1%eth0]/a%25", false, "fe80::1%eth0", 80, "/a%25"}}) {
    const auto url = parse_http_url(row.text);
    ASSERT_TRUE(url.ok()) << row.text;
    EXPECT_EQ(url->tls, row.tls);
    EXPECT_EQ(url->host, row.host);
    EXPECT_EQ(url->port, row.port);
    EXPECT_EQ(url->target, row.target);
  }
  for (const char* text : {"", "ftp://x/", "127.0.0.1:9400", "http://", "http:///metrics", "http://:9400/",
                           "http://a:0/", "http://a:65536/", "http://a:x/", "http://a:/", "http://[::1/",
                           "http://[::1]x/", "http://a/b c", "http://a/\r\nX: y", "http://a/#b"})
    EXPECT_FALSE(parse_http_url(text).ok()) << text;
  // A secret is not said again.
  const auto secret = parse_http_url("http://me:secret@a/");
  ASSERT_FALSE(secret.ok());
  EXPECT_EQ(secret.error().message.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace gpuledger::app
