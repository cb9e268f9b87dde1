// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/docker_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "support/manual_timer.h"
#include "unit/http/temporary_directory.h"
#include "unit/net/fake_server.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;
using net::http_answer;
using ::testing::HasSubstr;
using Connection = net::FakeServer::Connection;
using Request = net::FakeServer::Request;

std::string container(const std::string& id, const std::string& names) {
  return R"({"Id":")" + id + R"(","Names":[)" + names + R"(],"Image":"x","Labels":{"a":"}]"},"State":"running"})";
}

class DockerNamesTest : public ::testing::Test {
 protected:
  void serve(net::FakeServer::Handler handler) { server_ = net::FakeServer::on_unix(socket_, std::move(handler)); }
  DockerOptions options() {
    DockerOptions options;
    options.socket = socket_;
    options.period = 30ms;
    return options;
  }

  http::TemporaryDirectory folder_;
  const std::string socket_ = folder_ / "d.sock";
  std::unique_ptr<net::FakeServer> server_;
};

TEST_F(DockerNamesTest, NamesContainers) {
  serve([](const Request&, Connection& connection) {
    connection.send(http_answer(200, "[" + container("1a", R"("/chat")") + "," + container("2b", R"("/web/db","/db")") +
                                         "," + container("3c", "") + "]\n"));
  });
  DockerNames source(options());
  ASSERT_TRUE(eventually([&] { return source.view() != nullptr; })) << source.health().reason;
  EXPECT_EQ(*source.view(), (ContainerNames{{"1a", "chat"}, {"2b", "db"}}));
  EXPECT_EQ(source.runtime(), "docker");
  EXPECT_TRUE(eventually([&] { return source.health().up; }));
  EXPECT_EQ(source.health().source, "docker");
  EXPECT_EQ(source.user(), std::to_string(::geteuid())) << "who listens, whoever owns the socket's file";
  EXPECT_EQ(server_->requests().at(0).target, "/containers/json?all=1");
  EXPECT_EQ(server_->requests().at(0).headers.at("host"), "localhost");
}

TEST_F(DockerNamesTest, KeepsTheNamesOfThoseThatHaveGoneForAWhile) {
  std::atomic<bool> gone{false};
  serve([&](const Request&, Connection& connection) {
    connection.send(http_answer(200, gone ? "[]" : "[" + container("1a", R"("/chat")") + "]"));
  });
  ManualTimer timer;
  DockerOptions timed = options();
  timed.timer = &timer;
  timed.period = 1min;
  timed.keep_gone = 5min;
  DockerNames source(timed);
  ASSERT_TRUE(timer.eventually_waits_for(1min));
  ASSERT_TRUE(source.view() && source.view()->contains("1a"));
  gone = true;
  for (int minutes = 1; minutes <= 5; ++minutes) {
    ASSERT_TRUE(timer.end_wait());
    EXPECT_TRUE(source.view()->contains("1a")) << minutes;
  }
  EXPECT_EQ(server_->requests().size(), 6u);
  ASSERT_TRUE(timer.end_wait());
  EXPECT_TRUE(source.view()->empty());
}

TEST_F(DockerNamesTest, KeepsNamesWhileTheDaemonRestarts) {
  serve([](const Request&, Connection& c) { c.send(http_answer(200, "[" + container("1a", R"("/chat")") + "]")); });
  DockerNames source(options());
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  server_.reset();
  ASSERT_TRUE(eventually([&] { return !source.health().up; }));
  EXPECT_THAT(source.health().reason, HasSubstr(socket_));
  EXPECT_TRUE(source.view()->contains("1a"));
  ::unlink(socket_.c_str());
  ASSERT_TRUE(eventually([&] { return source.health().errors.contains("not_found"); }));
  serve([](const Request&, Connection& c) { c.send(http_answer(200, "[" + container("2b", R"("/new")") + "]")); });
  EXPECT_TRUE(eventually([&] { return source.health().up && source.view()->contains("2b"); }));
}

TEST_F(DockerNamesTest, RefusesWhatIsNoListOfContainers) {
  const std::vector<std::string> bodies = {"{}", "[1]", "[{}", "[{]", "null", std::string("\xff\xfe\0", 3)};
  std::atomic<size_t> next{0};
  serve([&](const Request&, Connection& connection) {
    const size_t i = next++;
    if (i < bodies.size()) return (void)connection.send(http_answer(200, bodies[i]));
    if (i == bodies.size()) return (void)connection.send(http_answer(404, "page not found"));
    connection.send(http_answer(200, R"([{"Id":7},{"Id":"x","Names":"y"},{"Id":")" + std::string(500, 'i') + R"("},)" +
                                         container("1a", R"(7,"/chat")") + "]"));
  });
  DockerNames source(options());
  ASSERT_TRUE(eventually([&] { return source.health().up; })) << source.health().reason;
  EXPECT_EQ(*source.view(), (ContainerNames{{"1a", "chat"}}));
  EXPECT_GE(source.health().errors.at("malformed"), bodies.size());
  EXPECT_EQ(source.health().errors.at("http_404"), 1u);
}

// Only the stop can end the request: the daemon neither answers nor hangs up.
TEST_F(DockerNamesTest, EndsWhileTheDaemonHangs) {
  serve([](const Request&, Connection& c) { c.wait_for_hangup(); });
  DockerOptions patient = options();
  patient.answer_within = 5h;
  const DockerNames source(patient);
  ASSERT_TRUE(eventually([&] { return server_->requests().size() == 1; }));
}

TEST_F(DockerNamesTest, IsThereWhenItsSocketIs) {
  EXPECT_FALSE(container_socket_exists(socket_));
  EXPECT_FALSE(container_socket_exists(folder_.write("file", "x")));
  EXPECT_FALSE(container_socket_exists(folder_ / "file/below"));
  serve([](const Request&, Connection&) {});
  EXPECT_TRUE(container_socket_exists(socket_));
}

// Root may do everything, so somebody else has to try.
TEST_F(DockerNamesTest, SaysThatItMayNotUseTheSocket) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, socket_.c_str(), socket_.size() + 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(10);
    if (!container_socket_exists(socket_)) ::_exit(11);
    DockerNames source(options());
    const bool told = eventually([&] { return source.health().errors.contains("permission"); });
    const bool advised = source.health().reason.find("run as root") != std::string::npos;
    ::_exit(!told ? 12 : !advised ? 13 : 0);
  }
  int outcome = 0;
  ASSERT_EQ(::waitpid(child, &outcome, 0), child);
  EXPECT_EQ(outcome, 0);
}

}  // namespace
}  // namespace gpuledger::identity
