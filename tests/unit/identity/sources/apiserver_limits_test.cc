// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <cstdlib>

#include "identity/sources/watch_event.h"
#include "unit/identity/sources/api_fixture.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST_F(ApiServerTest, RefusesToAskForTheWholeCluster) {
  serve(lists("1", {}), idle);
  for (const char* name : {"", "a,b", "a&b=c", "a b", "A", "a\n", "../x", "a=b"}) {
    ApiServerOptions wrong = options();
    wrong.node_name = name;
    const auto started = ApiServerPods::start(wrong);
    EXPECT_FALSE(started) << name;
  }
  ApiServerOptions no_host = options();
  no_host.host = "";
  EXPECT_FALSE(ApiServerPods::start(no_host));
  EXPECT_TRUE(server_->requests().empty());
}

TEST_F(ApiServerTest, DoesNotFollowRedirects) {
  serve([](int, const Request&, Connection& c) { c.send(http_answer(307, "", "Location: https://127.0.0.1:1/\r\n")); },
        idle);
  start();
  ASSERT_TRUE(eventually([&] { return errors("http_307") == 1; }));
  EXPECT_THAT(source_->health().reason, HasSubstr("redirect"));
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(lists_, 1);
}

TEST_F(ApiServerTest, GoesOnAfterEventsItCannotRead) {
  const std::string huge = event_text("ADDED", R"({"metadata":{"name":")" + std::string(9 << 20, 'x') + R"("}})");
  const std::string deep = event_text("ADDED", std::string(100'000, '[') + std::string(100'000, ']'));
  serve(lists("1", {}), [&](int number, const Request& request, Connection& connection) {
    if (number > 1) return idle(number, request, connection);
    connection.send(chunked_head() + chunk(event_text("ADDED", "{}")) + chunk(event_text("NEWER", pod_text("n"))));
    connection.send(chunk("{\"type\":\xff}") + chunk(event_text("MODIFIED", R"({"metadata":[7,{"uid":8}]})")));
    connection.send(chunk(huge) + chunk(deep) + chunk(event_text("ADDED", pod_text("a", "node-1", "8"))) + kLastChunk);
  });
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 2; }, 10s)) << source_->health().reason;
  EXPECT_TRUE(knows("a"));
  EXPECT_EQ(errors("malformed"), 4u);
  EXPECT_EQ(errors("event_too_large"), 2u);
  EXPECT_TRUE(has(requests(true).at(1), "resourceVersion=8&"));
  EXPECT_EQ(lists_, 1);
}

TEST_F(ApiServerTest, ListsAnewWhenAWatchMakesNoSense) {
  serve(lists("1", {pod_text("a")}), [](int number, const Request& request, Connection& connection) {
    if (number > 1) return idle(number, request, connection);
    connection.send(chunked_head() + chunk(std::string("\0\1\2<html>", 9)));
    connection.wait_for_hangup();
  });
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 2; }));
  EXPECT_EQ(lists_, 2);
  EXPECT_EQ(errors("malformed"), 1u);
}

TEST_F(ApiServerTest, ListsAnewWhenItsVersionIsRefused) {
  serve(lists("a&b=%", {pod_text("a")}), [](int number, const Request& request, Connection& connection) {
    if (number > 1) return idle(number, request, connection);
    connection.send(http_answer(400, status_text(400, "BadRequest", "invalid resource version")));
  });
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 2; }));
  EXPECT_EQ(lists_, 2);
  EXPECT_TRUE(has(requests(true).at(0), "resourceVersion=a%26b%3D%25&")) << requests(true).at(0).target;
}

TEST_F(ApiServerTest, KeepsItsPodsWhenAListMakesNoSense) {
  const std::vector<std::string> bodies = {"", "[]", R"({"items":[{}]})", R"({"metadata":{"resourceVersion":"1"}})",
                                           pod_list_text("9", {pod_text("b")}).substr(0, 300)};
  serve(
      [&](int number, const Request&, Connection& connection) {
        const size_t i = static_cast<size_t>(number) - 2;
        const bool wrong = number > 1 && i < bodies.size();
        connection.send(http_answer(200, wrong ? bodies[i] : pod_list_text("1", {pod_text("a")})));
      },
      [](int number, const Request& request, Connection& connection) {
        if (number > 1) return idle(number, request, connection);
        connection.send(http_answer(410, ""));
      });
  start();
  ASSERT_TRUE(eventually([&] { return errors("malformed") >= bodies.size(); })) << source_->health().reason;
  EXPECT_TRUE(knows("a"));
  EXPECT_FALSE(knows("b"));
  EXPECT_TRUE(eventually([&] { return watches_ == 2; }));
}

TEST_F(ApiServerTest, LeavesOutPodsThatAreNoneAndCounts) {
  serve(lists("1", {"{}", pod_text("a"), R"({"metadata":{"uid":7}})", R"({"metadata":{"name":"n","uid":""}})"}), idle);
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 1; }));
  EXPECT_TRUE(knows("a"));
  EXPECT_EQ(source_->view()->pods().size(), 1u);
  EXPECT_EQ(errors("pods_left_out"), 1u);
}

TEST_F(ApiServerTest, MakesFewViewsOfManyEvents) {
  constexpr int kEvents = 60;
  serve(lists("1", {}), [](int, const Request&, Connection& connection) {
    connection.send(chunked_head());
    for (int i = 1; i <= kEvents; ++i) {
      connection.send(chunk(event_text("ADDED", pod_text("p" + std::to_string(i)))));
      std::this_thread::sleep_for(5ms);
    }
    connection.wait_for_hangup();
  });
  ApiServerOptions calm = options();
  calm.publish_gap = 100ms;
  start(calm);
  std::vector<std::shared_ptr<const PodView>> views;
  ASSERT_TRUE(eventually([&] {
    auto view = source_->view();
    if (view != nullptr && (views.empty() || views.back() != view)) views.push_back(std::move(view));
    return knows("p" + std::to_string(kEvents));
  }));
  EXPECT_GE(views.size(), 2u);
  EXPECT_LE(views.size(), 12u);
}

TEST_F(ApiServerTest, EndsWithinASecondWhateverItIsDoing) {
  const auto ends_quickly = [&](const char* when) {
    const auto begin = Clock::now();
    source_.reset();
    EXPECT_LT(Clock::now() - begin, 1s) << when;
  };
  serve([](int, const Request&, Connection& c) { c.wait_for_hangup(); }, idle);
  start();
  ASSERT_TRUE(eventually([&] { return lists_ == 1; }));
  ends_quickly("waiting for a list");

  serve(lists("1", {}), idle);
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 1; }));
  ends_quickly("watching");

  serve([](int, const Request&, Connection& c) { c.send(http_answer(403, "")); }, idle);
  start();
  ASSERT_TRUE(eventually([&] { return errors("http_403") == 1; }));
  ends_quickly("waiting after a refusal");

  ApiServerOptions late = options();
  late.start_delay = 1000h;
  start(late);
  ends_quickly("waiting for its start");
}

TEST_F(ApiServerTest, FiveHundredPodsCostLittle) {
  std::vector<std::string> pods;
  for (int i = 0; i < 500; ++i) {
    std::string pod = pod_text("worker-" + std::to_string(i), "node-1", "1", std::string(60, 'c') + std::to_string(i));
    // As large as they are in production, where most of it is spec and managedFields.
    pod.insert(pod.find(R"("env":[)") + 7, R"({"name":"A","value":")" + std::string(14'000, 'v') + R"("},)");
    pods.push_back(std::move(pod));
  }
  serve(lists("1", pods), idle);
  const size_t before = ::mallinfo2().uordblks;
  const auto begin = Clock::now();
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 1; }, 20s));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
  const size_t after = ::mallinfo2().uordblks;
  RecordProperty("list_ms", static_cast<int>(took.count()));
  EXPECT_EQ(source_->view()->pods().size(), 500u);
  EXPECT_LT(after, before + (5 << 20));
  std::printf("500 pods of 15 KB: %lld ms, %zu KiB\n", static_cast<long long>(took.count()), (after - before) >> 10);
}

TEST(ClusterEnvironment, IsReadAsEveryPodHasIt) {
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  ::unsetenv("KUBERNETES_SERVICE_PORT");
  EXPECT_EQ(read_cluster_environment().error().code, Code::kNotFound);
  ::setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  ::setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
  const auto options = read_cluster_environment();
  ASSERT_TRUE(options);
  EXPECT_EQ(options->host, "fd00::1");
  EXPECT_EQ(options->port, 6443);
  EXPECT_EQ(options->account.token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
  for (const char* port : {"", "x", "0", "65536", "443x", "tcp://10.0.0.1:443"}) {
    ::setenv("KUBERNETES_SERVICE_PORT", port, 1);
    EXPECT_EQ(read_cluster_environment().error().code, Code::kMalformed) << port;
  }
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  ::unsetenv("KUBERNETES_SERVICE_PORT");
}

TEST(ApiStatusText, IsReadWhateverItIs) {
  EXPECT_TRUE(parse_api_status(status_text(410, "Expired")).expired());
  EXPECT_TRUE(parse_api_status(R"({"reason":"Gone"})").expired());
  EXPECT_TRUE(parse_api_status(status_text(504, "Timeout", "", "ResourceVersionTooLarge")).too_new);
  for (const char* text : {"", "null", "[]", R"({"code":-1})", R"({"code":"410","reason":7,"details":[]})", "\xff"})
    EXPECT_EQ(parse_api_status(text).code, 0u) << text;
  EXPECT_LT(parse_api_status(status_text(500, "x", std::string(10'000, 'm'))).message.size(), 300u);
}

}  // namespace
}  // namespace gpuledger::identity
