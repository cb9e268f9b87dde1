// SPDX-License-Identifier: Apache-2.0
#include "app/bill/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/http/certificates.h"
#include "unit/http/temporary_directory.h"
#include "unit/net/fake_server.h"

namespace gpuledger::app {
namespace {

using namespace std::chrono_literals;
using net::FakeServer;
using net::http_answer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Connection = FakeServer::Connection;
using Request = FakeServer::Request;

constexpr const char* kGood =
    R"({"status":"success","data":{"resultType":"vector","result":[{"metric":{"a":"b"},"value":[1,"5"]}]}})";

class BillServerTest : public ::testing::Test {
 protected:
  void serve(FakeServer::Handler handler, std::optional<http::Identity> tls = std::nullopt) {
    const std::string scheme = tls ? "https" : "http";
    fake_ = FakeServer::on_loopback(std::move(handler), std::move(tls));
    at(scheme + "://127.0.0.1:" + std::to_string(fake_->port()));
  }
  void serve(const std::string& bytes) {
    serve([bytes](const Request&, Connection& connection) { connection.send(bytes); });
  }
  void at(const std::string& url) {
    server_.url = *parse_prometheus_url(url);
    server_.answer_within = 1min;
    server_.first_pause = 1ms;
  }
  Result<std::vector<BillSeries>> ask() const {
    return ask_server(server_)("up{a=\"b c\"}", std::chrono::sys_seconds(1790000000s));
  }
  std::string error() const {
    const auto answer = ask();
    if (answer.ok()) return "(no error)";
    EXPECT_EQ(answer.error().message.find('\n'), std::string::npos);
    EXPECT_THAT(answer.error().message, testing::StartsWith(server_.url.text + ": "));
    return answer.error().message;
  }
  std::unique_ptr<FakeServer> fake_;
  BillServer server_;
};

TEST_F(BillServerTest, EndsAtOnceWhenNobodyWaits) {
  const auto given_up = std::make_shared<net::Interrupt>();
  serve([&](const Request&, Connection& connection) {
    given_up->raise();
    connection.wait_for_hangup();
  });
  server_.given_up = given_up;
  EXPECT_EQ(ask().error().code, Code::kTimeout);
  EXPECT_EQ(ask().error().code, Code::kTimeout) << "nor is another asked";
  EXPECT_EQ(fake_->requests().size(), 1u);
}

TEST_F(BillServerTest, DoesNotWaitForTheNextTryWhenNobodyWaits) {
  const auto given_up = std::make_shared<net::Interrupt>();
  serve(http_answer(503, ""));
  server_.first_pause = 1h;
  server_.given_up = given_up;
  std::thread asker([&] { EXPECT_EQ(ask().error().code, Code::kTimeout); });
  EXPECT_TRUE(eventually([&] { return fake_->requests().size() == 1; }));
  given_up->raise();
  asker.join();
  EXPECT_EQ(fake_->requests().size(), 1u);
}

TEST_F(BillServerTest, AsksForATime) {
  serve(http_answer(200, kGood));
  at("http://127.0.0.1:" + std::to_string(fake_->port()) + "/select/0/prometheus/");
  ASSERT_TRUE(ask().ok()) << error();
  EXPECT_EQ(fake_->requests().at(0).target,
            "/select/0/prometheus/api/v1/query?query=up%7Ba%3D%22b%20c%22%7D&time=1790000000"
            "&deny_partial_response=1&partial_response=false&nocache=1&dedup=false");
}

TEST_F(BillServerTest, TakesWhatStandsBeforeThePath) {
  for (const char* url : {"http://h:1", "http://h:1/", "http://h:1/api/v1/query", "http://h:1/api/v1/"}) {
    EXPECT_EQ(parse_prometheus_url(url)->http.target, "") << url;
  }
  EXPECT_EQ(parse_prometheus_url("http://h:1/prometheus/api/v1/query")->http.target, "/prometheus");
  const auto wrong = parse_prometheus_url("ftp://me:secret@h");
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message, AllOf(HasSubstr("Prometheus server's address"), Not(HasSubstr("secret"))));
}

TEST_F(BillServerTest, SendsTokensAndPasswords) {
  const http::TemporaryDirectory folder;
  serve(http_answer(200, kGood));
  server_.token_file = folder.write("token", "abc\n");
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(fake_->requests().back().headers.at("authorization"), "Bearer abc");
  server_.token_file.clear();
  server_.password_file = folder.write("password", "secret\n");
  EXPECT_THAT(error(), HasSubstr("--prometheus-password-file: needs a user in the URL"));
  at("http://ann@127.0.0.1:" + std::to_string(fake_->port()));
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(fake_->requests().back().headers.at("authorization"), "Basic YW5uOnNlY3JldA==");
  server_.password_file = folder / "none";
  EXPECT_THAT(error(), HasSubstr("--prometheus-password-file: "));
  server_.token_file = folder / "none";
  EXPECT_THAT(error(), HasSubstr("--prometheus-token-file: "));
}

TEST_F(BillServerTest, SendsMoreHeaders) {
  serve(http_answer(200, kGood));
  server_.headers = {{"X-Scope-OrgID", "east"}};
  ASSERT_TRUE(ask().ok());
  EXPECT_EQ(fake_->requests().back().headers.at("x-scope-orgid"), "east");
}

TEST_F(BillServerTest, OverTls) {
  const http::TemporaryDirectory folder;
  const http::Identity authority = http::make_authority("the server's");
  const auto good = [](const Request&, Connection& connection) { connection.send(http_answer(200, kGood)); };
  serve(good, http::make_certificate("server", authority, "IP:127.0.0.1"));
  EXPECT_THAT(error(), HasSubstr("; --prometheus-ca-file=FILE names its CA or the certificate itself"));
  server_.ca_file = folder / "none";
  EXPECT_THAT(error(), HasSubstr("--prometheus-ca-file: "));
  server_.ca_file = folder.write("ca.pem", authority.cert);
  server_.token_file = folder.write("token", "abc");
  ASSERT_TRUE(ask().ok()) << error();
  EXPECT_EQ(fake_->requests().back().headers.at("authorization"), "Bearer abc");
  serve(good, http::make_certificate("server", authority, "DNS:elsewhere"));
  EXPECT_THAT(error(), HasSubstr("its certificate is refused")) << "of another server";
}

TEST_F(BillServerTest, SaysThatAnAnswerWouldBeTooLarge) {
  serve(http_answer(422, R"({"status":"error","error":"the query exceeded the maximum number of series"})"));
  EXPECT_EQ(ask().error().code, Code::kNotSupported);
  EXPECT_THAT(error(), HasSubstr("answers 422: the query exceeded"));
  serve(http_answer(200, kGood));
  server_.largest_answer = 10;
  EXPECT_EQ(ask().error().code, Code::kNotSupported);
  EXPECT_THAT(error(), HasSubstr("an answer of more than 10 bytes; bill parts of the fleet one by one with --match"));
}

TEST_F(BillServerTest, TriesAgainWhatMayPass) {
  for (const int status : {429, 500, 503}) {
    std::atomic<int> asked = 0;
    serve([&](const Request&, Connection& connection) {
      connection.send(++asked < 3 ? http_answer(status, "busy") : http_answer(200, kGood));
    });
    EXPECT_TRUE(ask().ok()) << error();
    EXPECT_EQ(asked, 3);
    fake_.reset();
  }
  serve(http_answer(503, R"({"status":"error","error":"too many queries"})"));
  EXPECT_THAT(error(), HasSubstr("answers 503: too many queries (tried 4 times)"));
  serve(http_answer(200, R"({"status":"success","isPartial":true,"data":{"resultType":"vector","result":[]}})"));
  EXPECT_THAT(error(), HasSubstr("partial"));
  EXPECT_EQ(fake_->requests().size(), 4U);
}

TEST_F(BillServerTest, SaysWhatIsWrong) {
  serve(http_answer(400, R"({"status":"error","error":"parse error at char 3"})"));
  EXPECT_THAT(error(), HasSubstr("answers 400: parse error at char 3"));
  EXPECT_EQ(fake_->requests().size(), 1U) << "asking again would not help";
  serve(http_answer(401, "who"));
  EXPECT_THAT(error(), HasSubstr("--prometheus-token-file"));
  serve(http_answer(404, "no"));
  EXPECT_THAT(error(), HasSubstr("/select/0/prometheus"));
  serve(http_answer(302, "", "Location: http://elsewhere/\r\n"));
  EXPECT_THAT(error(), HasSubstr("answers 302; is a login page or a proxy in between?"));
  serve([](const Request&, Connection& connection) { connection.wait_for_hangup(); });
  server_.answer_within = 100ms;
  EXPECT_THAT(error(), HasSubstr("no answer in time"));
  serve("SSH-2.0-OpenSSH_9.2\r\n");
  EXPECT_THAT(error(), HasSubstr("is a Prometheus server there?"));
  serve(http_answer(200, "<html></html>"));
  EXPECT_THAT(error(), HasSubstr("answers with a page, not with JSON; is a login page or a proxy in between?"));
  serve(http_answer(200, "who are you?"));
  EXPECT_THAT(error(), HasSubstr("no JSON"));
}

}  // namespace
}  // namespace gpuledger::app
