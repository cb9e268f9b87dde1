// SPDX-License-Identifier: Apache-2.0
#include "app/top/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/top/feed.h"
#include "support/eventually.h"
#include "unit/http/temporary_directory.h"
#include "unit/net/fake_server.h"

namespace gpuledger::app::top {
namespace {

using namespace std::chrono_literals;
using net::FakeServer;
using net::http_answer;
using ::testing::HasSubstr;
using Connection = FakeServer::Connection;
using Request = FakeServer::Request;

constexpr const char* kBooks = R"({"at":100.5,"cycle":7,"gpus":[{"index":0,"up":true,"energy_joules":12.5}],
  "node":"n7","processes":[{"pid":5,"gpu":0,"active":true,"energy_joules":{"total":3.25},"name":"p"}],"sources":[]})";

class TopExporter : public ::testing::Test {
 protected:
  void serve(FakeServer::Handler handler) {
    server_ = FakeServer::on_loopback(std::move(handler));
    ask_at("127.0.0.1:" + std::to_string(server_->port()));
  }
  void serve(const std::string& bytes) {
    serve([bytes](const Request&, Connection& connection) { connection.send(bytes); });
  }
  void ask_at(const std::string& place) {
    exporter_.url = *parse_exporter_url("http://" + place);
    exporter_.answer_within = 1min;
  }
  Result<Books> read() const { return read_exporter(exporter_, {}); }
  std::string error() const {
    const auto books = read();
    if (books.ok()) return "(no error)";
    EXPECT_THAT(books.error().message, testing::StartsWith(exporter_.url.text + ": "));
    EXPECT_EQ(books.error().message.find('\n'), std::string::npos);
    return books.error().message;
  }

  std::unique_ptr<FakeServer> server_;
  Exporter exporter_;
};

TEST_F(TopExporter, ReadsBooks) {
  serve(http_answer(200, kBooks));
  const auto books = read();
  ASSERT_TRUE(books.ok()) << books.error().message;
  EXPECT_EQ(books->at, 100.5);
  EXPECT_EQ(books->node, "n7");
  EXPECT_EQ(books->gpus.at(0).joules, 12.5);
  EXPECT_EQ(books->processes.at(0).joules, 3.25);
  EXPECT_FALSE(books->processes.at(0).share) << "absent is unknown";
  const auto request = server_->requests().at(0);
  EXPECT_EQ(request.target, "/api/v1/snapshot");
  EXPECT_FALSE(request.headers.contains("authorization"));
}

TEST_F(TopExporter, SendsThePassword) {
  serve(http_answer(200, kBooks));
  ask_at("ann:s%40cret@127.0.0.1:" + std::to_string(server_->port()));
  ASSERT_TRUE(read().ok());
  EXPECT_EQ(server_->requests().at(0).headers.at("authorization"), "Basic YW5uOnNAY3JldA==");
}

TEST_F(TopExporter, AsksAUnixSocket) {
  const http::TemporaryDirectory folder;
  const std::string path = folder / "ledger.sock";
  const auto server = FakeServer::on_unix(
      path, [](const Request&, Connection& connection) { connection.send(http_answer(200, kBooks)); });
  exporter_.url = *parse_exporter_url("unix:" + path);
  EXPECT_TRUE(read().ok()) << error();
}

TEST_F(TopExporter, SaysWhatIsWrong) {
  serve(http_answer(404, "nothing here"));
  EXPECT_THAT(error(), HasSubstr("404: no gpu-ledger there"));
  serve(http_answer(401, "who are you", "WWW-Authenticate: Basic\r\n"));
  EXPECT_THAT(error(), HasSubstr("needs a password"));
  ask_at("ann:secret@127.0.0.1:" + std::to_string(server_->port()));
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("refuses this user and password"), testing::Not(HasSubstr("secret"))));
  serve(http_answer(503, "no snapshot yet"));
  EXPECT_THAT(error(), HasSubstr("no books yet"));
  serve(http_answer(302, "", "Location: http://elsewhere/\r\n"));
  EXPECT_THAT(error(), HasSubstr("answers 302"));
  for (const char* foreign : {"", "hello", "[]", "{}", "{\"at\":1}", R"({"at":"x","gpus":[],"processes":[]})",
                              "{\"gpus\":[", "<html></html>", "\xff\xfe"}) {
    serve(http_answer(200, foreign));
    EXPECT_THAT(error(), HasSubstr("not gpu-ledger's JSON")) << foreign;
  }
  serve("SSH-2.0-OpenSSH_9.2\r\n");
  EXPECT_THAT(error(), HasSubstr("is gpu-ledger serving there?"));
  serve([](const Request&, Connection& connection) { connection.wait_for_hangup(); });
  exporter_.answer_within = 100ms;
  EXPECT_THAT(error(), HasSubstr("no answer in time"));
  const uint16_t port = server_->port();
  server_.reset();
  ask_at("127.0.0.1:" + std::to_string(port));
  EXPECT_THAT(error(), HasSubstr("Connection refused; is gpu-ledger serving there?"));
  serve(http_answer(200, std::string("{\"at\":") + std::string(70 << 20, ' ') + "1}"));
  EXPECT_THAT(error(), HasSubstr("more than 67108864 bytes"));
}

TEST_F(TopExporter, OnlyNobodyThereIsNotFound) {
  const auto code = [&] { return read().error().code; };
  serve(http_answer(503, "no snapshot yet"));
  EXPECT_NE(code(), Code::kNotFound);
  serve([](const Request&, Connection& connection) { connection.wait_for_hangup(); });
  exporter_.answer_within = 100ms;
  EXPECT_NE(code(), Code::kNotFound);
  serve([](const Request&, Connection&) {});  // cut
  EXPECT_NE(code(), Code::kNotFound);
  server_.reset();
  EXPECT_EQ(code(), Code::kNotFound);
  exporter_.url = *parse_exporter_url("unix:/nonexistent/socket");
  EXPECT_EQ(code(), Code::kNotFound);
  exporter_.url = *parse_exporter_url("http://no-such-host.invalid");
  exporter_.answer_within = 1s;  // for a machine whose name server is away
  EXPECT_NE(code(), Code::kNotFound);
}

TEST_F(TopExporter, SaysWhatIsWrongWithTls) {
  serve([](const Request&, Connection&) {});
  const std::string place = "127.0.0.1:" + std::to_string(server_->port());
  EXPECT_THAT(error(), HasSubstr("if it uses TLS, write --url=https://" + place));
  serve(http_answer(400, "Client sent an HTTP request to an HTTPS server."));
  EXPECT_THAT(error(), HasSubstr("answers 400; if it uses TLS, write --url=https://127.0.0.1:"));

  const http::TemporaryDirectory folder;
  const auto authority = http::make_authority("ours");
  exporter_.ca_file = folder.write("ca.pem", authority.cert);
  const auto serve_tls = [&](const http::Identity& identity) {
    server_ = FakeServer::on_loopback(
        [](const Request&, Connection& connection) { connection.send(http_answer(200, kBooks)); }, identity);
    exporter_.url = *parse_exporter_url("https://127.0.0.1:" + std::to_string(server_->port()));
  };
  serve_tls(http::make_certificate("server", authority, "IP:127.0.0.1"));
  EXPECT_TRUE(read().ok()) << error();
  exporter_.ca_file = folder / "none.pem";
  EXPECT_THAT(error(), HasSubstr(": --url-ca-file: cannot read " + exporter_.ca_file + ": No such file"));
  exporter_.ca_file = folder.write("empty.pem", "nothing");
  EXPECT_THAT(error(), HasSubstr(": --url-ca-file: " + exporter_.ca_file + " holds no certificate"));
  exporter_.ca_file = folder.write("other.pem", http::make_authority("others").cert);
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("its certificate is refused: "),
                                      HasSubstr("; --url-ca-file=FILE names its CA or the certificate itself")));
  exporter_.ca_file = folder / "ca.pem";
  serve_tls(http::make_certificate("server", authority, "IP:127.0.0.2"));
  EXPECT_THAT(error(), HasSubstr("mismatch; write a name or address that is in the certificate"));
}

TEST_F(TopExporter, FieldsOfAnotherTypeAreUnknown) {
  serve(
      http_answer(200, R"({"at":1,"cycle":"x","gpus":[7,{"index":-1,"model":5,"up":"yes","health":[1,"hot"]}],"node":[],
    "processes":[null,{"pid":"five","gpu":1e99,"energy_joules":3,"mig":"no","idle":1,"name":{}}],"sources":{}})"));
  const auto books = read();
  ASSERT_TRUE(books.ok()) << books.error().message;
  ASSERT_EQ(books->gpus.size(), 1u);
  EXPECT_EQ(books->gpus[0].model, "");
  EXPECT_EQ(books->gpus[0].health, std::vector<std::string>{"hot"});
  ASSERT_EQ(books->processes.size(), 1u);
  EXPECT_EQ(books->processes[0].pid, 0);
}

TEST_F(TopExporter, FeedKeepsTheLastBooksAndComesBack) {
  std::atomic<bool> away = false;
  std::atomic<int> cycle = 8;
  const SystemClock clock;
  const auto books = [&] {
    Books made = *parse_books(kBooks);
    made.cycle = static_cast<uint64_t>(cycle);
    made.at += static_cast<double>(cycle++);
    return made;
  };
  const Feed feed(
      books(),
      [&](const std::stop_token&) -> Result<Books> {
        if (away) return Error{Code::kUnavailable, "x: gone"};
        return books();
      },
      10ms, clock);
  ASSERT_TRUE(eventually([&] { return feed.latest().before != nullptr; }));
  EXPECT_EQ(feed.latest().trouble, "");
  away = true;
  ASSERT_TRUE(eventually([&] { return !feed.latest().trouble.empty(); }));
  EXPECT_THAT(feed.latest().trouble, testing::MatchesRegex("x: gone; no answer since [0-9]{2}:[0-9]{2}:[0-9]{2}"));
  ASSERT_NE(feed.latest().now, nullptr);
  away = false;
  ASSERT_TRUE(eventually([&] { return feed.latest().trouble.empty(); }));
}

}  // namespace
}  // namespace gpuledger::app::top
