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
  start_timed(options());
  ASSERT_TRUE(timer_.eventually_waits_for(1h));
  EXPECT_EQ(errors("http_307"), 1u);
  EXPECT_THAT(source_->health().reason, HasSubstr("redirect"));
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
  ASSERT_TRUE(eventually([&] { return watches_ == 2; })) << source_->health().reason;
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

TEST_F(ApiServerTest, ABurstOfEventsMakesOneView) {
  // After 60 events one that cannot be read, which is counted; and again, when the first was worked through.
  std::atomic<int> parts{1};
  const auto part = [](int first) {
    std::string events;
    for (int i = first; i < first + 60; ++i) events += event_text("ADDED", pod_text("p" + std::to_string(i)));
    return chunk(events) + chunk(event_text("ADDED", "{}"));
  };
  serve(lists("1", {}), [&](int, const Request&, Connection& connection) {
    connection.send(chunked_head());
    for (int sent = 0; sent < 3; ++sent) {
      if (!eventually([&] { return parts > sent; })) return;
      connection.send(part(100 * sent));
    }
    connection.wait_for_hangup();
  });
  ApiServerOptions calm = options();
  calm.publish_gap = 1h;
  start_timed(calm);
  ASSERT_TRUE(eventually([&] { return errors("malformed") == 1; }));
  const auto first = source_->view();
  parts = 2;
  ASSERT_TRUE(eventually([&] { return errors("malformed") == 2; }));
  EXPECT_EQ(source_->view(), first);
  EXPECT_TRUE(first->pods().empty());
  timer_.advance(1h);
  parts = 3;
  ASSERT_TRUE(eventually([&] { return errors("malformed") == 3; }));
  ASSERT_TRUE(eventually([&] { return source_->view() != first; }));
  EXPECT_GE(source_->view()->pods().size(), 120u);
}

TEST_F(ApiServerTest, TheLastEventsAreShownOnceItIsQuiet) {
  serve(lists("1", {}), [](int, const Request&, Connection& connection) {
    connection.send(chunked_head() + chunk(event_text("ADDED", pod_text("a"))));
    connection.wait_for_hangup();
  });
  start_timed(options());  // the gap between two views is never over
  EXPECT_TRUE(eventually([&] { return knows("a"); }));
  EXPECT_EQ(watches_, 1);
}

// Only the stop can end what it does: the server neither answers nor hangs up, and every limit is hours away.
TEST_F(ApiServerTest, EndsWhateverItIsDoing) {
  const auto patient = [&] {
    ApiServerOptions options = this->options();
    options.answer_within = options.list_within = options.watch_shortest = options.watch_longest = 5h;
    return options;
  };
  serve([](int, const Request&, Connection& c) { c.wait_for_hangup(); }, idle);
  start(patient());
  ASSERT_TRUE(eventually([&] { return lists_ == 1; }));
  source_.reset();

  serve(lists("1", {}), idle);
  start(patient());
  ASSERT_TRUE(eventually([&] { return watches_ == 1; }));
  source_.reset();

  serve([](int, const Request&, Connection& c) { c.send(http_answer(403, "")); }, idle);
  start(patient());
  ASSERT_TRUE(eventually([&] { return errors("http_403") == 1; }));
  source_.reset();

  lists_ = 0;
  ApiServerOptions late = patient();
  late.start_delay = 100'000h;
  start(late);
  source_.reset();
  EXPECT_EQ(lists_, 0) << "it was still waiting for its start";
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
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 1; }));
  const size_t after = ::mallinfo2().uordblks;
  EXPECT_EQ(source_->view()->pods().size(), 500u);
  EXPECT_LT(after, before + (5 << 20));
  std::printf("500 pods of 15 KB: %zu KiB\n", (after - before) >> 10);
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
