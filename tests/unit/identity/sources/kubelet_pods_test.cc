// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/kubelet_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/manual_timer.h"
#include "unit/http/temporary_directory.h"
#include "unit/identity/sources/pod_text.h"
#include "unit/net/fake_server.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;
using net::gzipped;
using net::http_answer;
using ::testing::HasSubstr;
using Connection = net::FakeServer::Connection;
using Request = net::FakeServer::Request;

class KubeletPodsTest : public ::testing::Test {
 protected:
  void serve(net::FakeServer::Handler handler, const std::string& names = "IP:127.0.0.1") {
    server_ = net::FakeServer::on_loopback(std::move(handler), http::make_certificate("kubelet", authority_, names));
  }
  KubeletOptions options() {
    KubeletOptions options;
    options.host = "127.0.0.1";
    options.port = server_->port();
    options.account = {folder_.write("token", "secret-token\n"), folder_.write("ca.crt", authority_.cert)};
    options.labels = {"team"};
    options.period = 50ms;
    return options;
  }
  KubeletOptions timed() {
    KubeletOptions timed = options();
    timed.timer = &timer_;
    timed.period = 1h;
    return timed;
  }

  ManualTimer timer_;
  http::TemporaryDirectory folder_;
  http::Identity authority_ = http::make_authority("the cluster");
  std::unique_ptr<net::FakeServer> server_;
};

TEST_F(KubeletPodsTest, ReadsThePodsOfTheNode) {
  serve([](const Request&, Connection& connection) {
    connection.send(http_answer(200, gzipped(pod_list_text("", {pod_text("a"), pod_text("b", "", "2", "beef")})),
                                "Content-Encoding: gzip\r\n"));
  });
  KubeletPods source(options());
  ASSERT_TRUE(eventually([&] { return source.view() != nullptr; })) << source.health().reason;
  EXPECT_TRUE(eventually([&] { return source.health().up; }));
  const auto view = source.view();
  EXPECT_EQ(view->pods().size(), 2u);
  const auto found = view->by_container_id("beef");
  ASSERT_NE(found.pod, nullptr);
  EXPECT_EQ(found.pod->name, "b");
  EXPECT_EQ(found.container->name, "main");
  EXPECT_EQ(found.pod->labels, (std::map<std::string, std::string>{{"team", "x"}}));
  const Request request = server_->requests().at(0);
  EXPECT_EQ(request.target, "/pods");
  EXPECT_EQ(request.headers.at("authorization"), "Bearer secret-token");
  EXPECT_THAT(request.headers.at("user-agent"), HasSubstr("gpu-ledger/"));
}

TEST_F(KubeletPodsTest, UsesTheNewTokenAndKeepsNamesWhileItFails) {
  std::atomic<bool> broken{false};
  serve([&](const Request& request, Connection& connection) {
    if (broken) return (void)connection.send(http_answer(500, "no"));
    const bool renewed = request.headers.at("authorization") == "Bearer renewed";
    connection.send(http_answer(200, pod_list_text("", {pod_text(renewed ? "new" : "old")})));
  });
  KubeletPods source(options());
  ASSERT_TRUE(eventually([&] { return source.view() && source.view()->by_uid("uid-old"); }));
  folder_.write("token", "renewed");
  ASSERT_TRUE(eventually([&] { return source.view()->by_uid("uid-new") != nullptr; }));
  EXPECT_NE(source.view()->by_uid("uid-old"), nullptr) << "a pod that has gone keeps its name for a while";
  broken = true;
  ASSERT_TRUE(eventually([&] { return !source.health().up; }));
  EXPECT_GE(source.health().errors.at("http_500"), 1u);
  EXPECT_NE(source.view()->by_uid("uid-new"), nullptr);
}

TEST_F(KubeletPodsTest, SaysWhichRightIsMissingAndDoesNotInsist) {
  std::atomic<int> status{403};
  serve([&](const Request&, Connection& connection) { connection.send(http_answer(status, "Forbidden")); });
  {
    KubeletPods source(timed());
    ASSERT_TRUE(timer_.eventually_waits_for(60s));
    EXPECT_EQ(source.health().errors.at("http_403"), 1u);
    EXPECT_THAT(source.health().reason, HasSubstr("needs nodes/pods get"));
    source.look_again();
    timer_.advance(59s);
    ASSERT_TRUE(timer_.stays());
    EXPECT_EQ(server_->requests().size(), 1u);
    ASSERT_TRUE(timer_.end_wait());
    EXPECT_EQ(server_->requests().size(), 2u);
  }
  status = 401;
  KubeletPods source(options());
  ASSERT_TRUE(eventually([&] { return source.health().errors.contains("http_401"); }));
  EXPECT_THAT(source.health().reason, HasSubstr("token"));
  EXPECT_EQ(source.health().reason.find("secret-token"), std::string::npos);
}

TEST_F(KubeletPodsTest, ChecksTheCertificateUnlessToldNotTo) {
  serve([](const Request&, Connection& c) { c.send(http_answer(200, pod_list_text("", {pod_text("a")}))); },
        "DNS:some-node");
  {
    KubeletPods source(options());
    ASSERT_TRUE(eventually([&] { return source.health().errors.contains("malformed"); }));
    EXPECT_THAT(source.health().reason, HasSubstr("certificate is refused"));
    EXPECT_TRUE(server_->requests().empty()) << "the token must not be sent";
  }
  KubeletOptions careless = options();
  careless.skip_verify = true;
  KubeletPods source(careless);
  EXPECT_TRUE(eventually([&] { return source.view() != nullptr; })) << source.health().reason;
}

TEST_F(KubeletPodsTest, LooksAgainWhenAsked) {
  serve([](const Request&, Connection& c) { c.send(http_answer(200, pod_list_text("", {}))); });
  KubeletPods source(timed());
  ASSERT_TRUE(timer_.eventually_waits_for(1h));
  source.look_again();
  source.look_again();
  ASSERT_TRUE(timer_.eventually_waits_for(1s)) << "at most once a second";
  EXPECT_EQ(server_->requests().size(), 1u);
  ASSERT_TRUE(timer_.end_wait());
  EXPECT_EQ(server_->requests().size(), 2u);
  EXPECT_EQ(timer_.waits_for(), 1h);
}

TEST_F(KubeletPodsTest, RefusesWhatIsNoList) {
  std::atomic<bool> wrong{false};
  const std::vector<std::string> bodies = {"<html>", R"({"kind":"Status"})", R"({"items":[{}]} x)", R"({"items":[)",
                                           std::string("\0\1\2", 3)};
  std::atomic<size_t> next{0};
  serve([&](const Request&, Connection& connection) {
    if (!wrong) return (void)connection.send(http_answer(200, pod_list_text("", {pod_text("a"), "{}"})));
    connection.send(http_answer(200, bodies[next++ % bodies.size()]));
  });
  KubeletPods source(options());
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  EXPECT_GE(source.health().errors.at("pods_left_out"), 1u);
  wrong = true;
  EXPECT_TRUE(eventually([&] { return source.health().errors["malformed"] >= bodies.size(); }));
  EXPECT_FALSE(source.health().up);
  EXPECT_NE(source.view()->by_uid("uid-a"), nullptr);
}

// Only the stop can end the request: the kubelet neither answers nor hangs up.
TEST_F(KubeletPodsTest, EndsWhileTheKubeletHangs) {
  serve([](const Request&, Connection& c) { c.wait_for_hangup(); });
  KubeletOptions patient = options();
  patient.answer_within = 5h;
  const KubeletPods source(patient);
  ASSERT_TRUE(eventually([&] { return server_->requests().size() == 1; }));
}

TEST(KubeletOptionsTest, FindsTheNodesAddress) {
  ::unsetenv("NODE_IP");
  ::unsetenv("HOST_IP");
  EXPECT_EQ(KubeletOptions::default_host(), "127.0.0.1");
  ::setenv("HOST_IP", "10.1.2.3", 1);
  EXPECT_EQ(KubeletOptions::default_host(), "10.1.2.3");
  ::setenv("NODE_IP", "10.9.9.9", 1);
  EXPECT_EQ(KubeletOptions::default_host(), "10.9.9.9");
  ::unsetenv("NODE_IP");
  ::unsetenv("HOST_IP");
}

}  // namespace
}  // namespace gpuledger::identity
