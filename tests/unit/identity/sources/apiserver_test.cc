// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/apiserver.h"

#include <malloc.h>

#include <cstdlib>

#include "unit/identity/sources/api_fixture.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST_F(ApiServerTest, ListsAndWatchesThisNodeOnly) {
  serve(lists("41", {pod_text("a"), pod_text("elsewhere", "node-2"), pod_text("nowhere", "")}), idle);
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 1; })) << source_->health().reason;
  EXPECT_TRUE(source_->health().up);
  EXPECT_EQ(source_->health().source, "apiserver");
  EXPECT_TRUE(knows("a"));
  EXPECT_FALSE(knows("elsewhere"));
  EXPECT_FALSE(knows("nowhere"));
  EXPECT_EQ(source_->view()->by_uid("uid-a")->labels, (std::map<std::string, std::string>{{"team", "x"}}));

  const Request list = requests(false).at(0), watch = requests(true).at(0);
  EXPECT_EQ(list.target,
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&resourceVersion=0&resourceVersionMatch=NotOlderThan");
  EXPECT_THAT(watch.target, MatchesRegex("/api/v1/pods.fieldSelector=spec.nodeName%3Dnode-1&watch=1&"
                                         "allowWatchBookmarks=true&resourceVersion=41&timeoutSeconds=[3-6][0-9][0-9]"));
  EXPECT_EQ(list.headers.at("authorization"), "Bearer secret-token");
  EXPECT_EQ(list.headers.at("accept"), "application/json");
  EXPECT_EQ(list.headers.at("accept-encoding"), "gzip");
  EXPECT_FALSE(watch.headers.contains("accept-encoding"));
  EXPECT_THAT(list.headers.at("user-agent"), MatchesRegex("gpu-ledger/.+ \\(linux/.+\\)"));
}

TEST_F(ApiServerTest, FollowsEventsWhereverTheirChunksAreCut) {
  const std::string events = event_text("ADDED", pod_text("b", "node-1", "42", "bb")) +
                             event_text("MODIFIED", pod_text("a", "node-1", "43", "aa")) +
                             event_text("ADDED", pod_text("elsewhere", "node-2", "44")) +
                             event_text("ADDED", pod_text("c", "node-1", "45")) +
                             event_text("DELETED", pod_text("c", "node-1", "46")) + bookmark_text("47");
  serve(lists("41", {pod_text("a")}), [&](int number, const Request& request, Connection& connection) {
    // Cut elsewhere each time; the last one byte by byte. Then the watch ends as it does when its time is over.
    const size_t width = number == 4 ? 1 : 97 + 31 * static_cast<size_t>(number);
    if (number > 4) return idle(number, request, connection);
    connection.send(chunked_head());
    for (size_t i = 0; i < events.size(); i += width) connection.send(chunk(events.substr(i, width)));
    connection.send(kLastChunk);
  });
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 5; })) << source_->health().reason;
  EXPECT_TRUE(knows("b"));
  EXPECT_TRUE(knows("c")) << "a deleted pod keeps its name for a while";
  EXPECT_FALSE(knows("elsewhere"));
  EXPECT_EQ(source_->view()->by_container_id("aa").pod->name, "a");
  EXPECT_TRUE(source_->health().errors.empty());
  const auto watches = requests(true);
  for (size_t i = 1; i < watches.size(); ++i) EXPECT_TRUE(has(watches[i], "resourceVersion=47&")) << watches[i].target;
  EXPECT_EQ(lists_, 1);
}

TEST_F(ApiServerTest, ListsAnewWhenItsVersionHasExpired) {
  serve(
      [](int number, const Request&, Connection& connection) {
        if (number == 1) connection.send(http_answer(200, pod_list_text("1", {pod_text("a"), pod_text("b")})));
        if (number == 2) connection.send(http_answer(200, pod_list_text("100", {pod_text("b"), pod_text("c")})));
        if (number > 2) connection.send(http_answer(200, pod_list_text("200", {pod_text("d")})));
      },
      [](int number, const Request& request, Connection& connection) {
        if (number == 1) return (void)connection.send(http_answer(410, status_text(410, "Expired", "too old")));
        if (number > 2) return idle(number, request, connection);
        // As servers do it when it expires later: a 200, and then an event.
        connection.send(chunked_head() + chunk(event_text("ERROR", status_text(410, "Gone"))));
        connection.wait_for_hangup();
      });
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 3; })) << source_->health().reason;
  EXPECT_EQ(lists_, 3);
  for (const Request& list : requests(false)) EXPECT_TRUE(has(list, "&resourceVersion=0&"));
  EXPECT_TRUE(has(requests(true).at(2), "resourceVersion=200&"));
  for (const char* pod : {"a", "b", "c", "d"}) EXPECT_TRUE(knows(pod)) << "those that are gone keep their names";
  EXPECT_EQ(errors("http_410"), 2u);
  EXPECT_TRUE(source_->health().up);
}

TEST_F(ApiServerTest, KeepsTheOldViewWhileItListsAnew) {
  serve(
      [](int number, const Request&, Connection& connection) {
        if (number > 1) return (void)connection.wait_for_hangup();
        connection.send(http_answer(200, pod_list_text("1", {pod_text("a")})));
      },
      [](int, const Request&, Connection& c) { c.send(http_answer(410, "")); });
  start();
  ASSERT_TRUE(eventually([&] { return lists_ == 2; }));
  EXPECT_TRUE(knows("a"));
}

TEST_F(ApiServerTest, ReadsTheTokenAnewForEveryRequestAndAtOnceWhenRejected) {
  serve(
      [&](int, const Request& request, Connection& connection) {
        if (request.headers.at("authorization") == "Bearer second")
          return (void)connection.send(http_answer(200, pod_list_text("1", {pod_text("a")})));
        folder_.write("token", "second\n");
        connection.send(http_answer(401, status_text(401, "Unauthorized")));
      },
      [&](int number, const Request& request, Connection& connection) {
        folder_.write("token", "third");
        if (number > 1) return idle(number, request, connection);
        connection.send(chunked_head() + chunk(bookmark_text("2")) + kLastChunk);
      });
  ApiServerOptions patient = options();
  patient.backoff = {1h, 1h, 2h};
  start(patient);
  ASSERT_TRUE(eventually([&] { return watches_ == 2; })) << source_->health().reason;
  EXPECT_EQ(requests(true).at(0).headers.at("authorization"), "Bearer second");
  EXPECT_EQ(requests(true).at(1).headers.at("authorization"), "Bearer third");
  EXPECT_EQ(errors("http_401"), 1u);
  EXPECT_TRUE(source_->health().up);
}

TEST_F(ApiServerTest, BacksOffWithATokenThatStaysRejected) {
  serve([](int, const Request&, Connection& c) { c.send(http_answer(401, "")); }, idle);
  ApiServerOptions patient = options();
  patient.backoff = {1h, 1h, 2h};
  start_timed(patient);
  ASSERT_TRUE(timer_.eventually_waits_for(1h, 2h));
  EXPECT_EQ(lists_, 1);
  EXPECT_EQ(errors("http_401"), 1u);
  EXPECT_THAT(source_->health().reason, HasSubstr("token"));
  EXPECT_EQ(source_->health().reason.find("secret-token"), std::string::npos);
}

TEST_F(ApiServerTest, AMissingOrEmptyTokenIsNoRequest) {
  serve(lists("1", {}), idle);
  ApiServerOptions without = options();
  without.account.token_file = folder_ / "none";
  start(without);
  ASSERT_TRUE(eventually([&] { return errors("not_found") >= 2; }));
  for (const char* text : {" \n", "a b", "a\r\nX-Evil: 1"}) {
    without.account.token_file = folder_.write("bad", text);
    start(without);
    EXPECT_TRUE(eventually([&] { return errors("malformed") >= 1; })) << text;
  }
  EXPECT_EQ(lists_, 0);
  folder_.write("bad", "good");
  EXPECT_TRUE(eventually([&] { return source_->health().up; }));
}

TEST_F(ApiServerTest, SaysThatRightsAreMissingAndDoesNotInsist) {
  const std::string text =
      status_text(403, "Forbidden", "pods is forbidden: User \\\"x\\\" cannot list\\nresource \\\"pods\\\"");
  serve([&](int, const Request&, Connection& c) { c.send(http_answer(403, text)); }, idle);
  start_timed(options());
  ASSERT_TRUE(timer_.eventually_waits_for(1h));
  EXPECT_EQ(lists_, 1);
  EXPECT_EQ(errors("http_403"), 1u);
  const std::string reason = source_->health().reason;
  EXPECT_THAT(reason, HasSubstr("RBAC: needs pods list, watch"));
  EXPECT_THAT(reason, HasSubstr("cannot list"));
  EXPECT_EQ(reason.find('\n'), std::string::npos);
  EXPECT_EQ(source_->view(), nullptr);
  ASSERT_TRUE(timer_.end_wait());
  EXPECT_EQ(lists_, 2);
}

TEST_F(ApiServerTest, SlowsDownWhenAskedToAndKeepsItsVersion) {
  serve(lists("7", {pod_text("a")}), [](int number, const Request& request, Connection& connection) {
    if (number > 1) return idle(number, request, connection);
    connection.send(http_answer(429, "", "Retry-After: 7\r\n"));
  });
  start_timed(options());
  ASSERT_TRUE(timer_.eventually_waits_for(7s));
  EXPECT_EQ(watches_, 1);
  timer_.advance(7s);
  ASSERT_TRUE(eventually([&] { return watches_ == 2; }));
  EXPECT_EQ(lists_, 1);
  EXPECT_TRUE(has(requests(true).at(1), "resourceVersion=7&"));
  EXPECT_TRUE(eventually([&] { return source_->health().up; }));
}

TEST_F(ApiServerTest, RecoversFromServerErrorsAndCutConnections) {
  serve(
      [](int number, const Request&, Connection& connection) {
        if (number == 1) return (void)connection.send(http_answer(500, "oops"));
        if (number == 2) return (void)connection.send(http_answer(503, ""));
        if (number == 3) return;  // hangs up without a word
        if (number == 4) return (void)connection.send(http_answer(504, status_text(504, "Timeout", "slow")));
        connection.send(http_answer(200, pod_list_text("5", {pod_text("a")})));
      },
      [](int number, const Request& request, Connection& connection) {
        if (number > 1) return idle(number, request, connection);
        connection.send(chunked_head() + chunk(bookmark_text("6")) + "ff\r\n{\"ty");
      });
  start();
  ASSERT_TRUE(eventually([&] { return watches_ == 2; })) << source_->health().reason;
  for (const char* code : {"http_500", "http_503", "http_504"}) EXPECT_EQ(errors(code), 1u) << code;
  EXPECT_EQ(errors("unavailable"), 2u);
  EXPECT_EQ(lists_, 5);
  EXPECT_TRUE(has(requests(true).at(1), "resourceVersion=6&")) << "a cut watch goes on where it was";
}

TEST_F(ApiServerTest, WaitsForAServerThatIsBehindThenListsWithoutAVersion) {
  const std::string text = status_text(504, "Timeout", "Too large resource version: 9", "ResourceVersionTooLarge");
  serve(lists("9", {pod_text("a")}), [&](int number, const Request& request, Connection& connection) {
    if (number == 1) return (void)connection.send(http_answer(504, text));
    if (number > 2) return idle(number, request, connection);
    connection.send(chunked_head() + chunk(event_text("ERROR", text)));
    connection.wait_for_hangup();
  });
  start_timed(options());
  ASSERT_TRUE(timer_.eventually_waits_for(50ms));
  EXPECT_EQ(watches_, 1);
  timer_.advance(50ms);
  ASSERT_TRUE(eventually([&] { return watches_ == 3; }));
  EXPECT_TRUE(has(requests(false).at(0), "resourceVersion=0"));
  EXPECT_FALSE(has(requests(false).at(1), "resourceVersion"));
  EXPECT_EQ(lists_, 2);
}

TEST_F(ApiServerTest, ResumesAtOnceAfterAnOrderlyEnd) {
  serve(lists("1", {}), [](int number, const Request& request, Connection& connection) {
    if (number > 3) return idle(number, request, connection);
    connection.send(chunked_head() + chunk(bookmark_text(std::to_string(number * 10))) + kLastChunk);
  });
  ApiServerOptions patient = options();
  patient.backoff = {1h, 1h, 2h};
  patient.short_watch = 1h;
  start(patient);
  ASSERT_TRUE(eventually([&] { return watches_ == 4; }));
  EXPECT_TRUE(has(requests(true).at(3), "resourceVersion=30&"));
}

TEST_F(ApiServerTest, BacksOffWhenWatchesEndAtOnceAndEmpty) {
  serve(lists("1", {}), [](int, const Request&, Connection& c) { c.send(chunked_head() + kLastChunk); });
  ApiServerOptions patient = options();
  patient.backoff = {1h, 1h, 2h};
  patient.short_watch = 1s;
  start_timed(patient);
  ASSERT_TRUE(timer_.eventually_waits_for(1h, 2h));
  EXPECT_EQ(watches_, 1);
}

TEST_F(ApiServerTest, BacksOffWhenEveryVersionHasExpired) {
  serve(lists("1", {}), [](int, const Request&, Connection& c) { c.send(http_answer(410, "")); });
  ApiServerOptions patient = options();
  patient.backoff = {1h, 1h, 2h};
  patient.relist_gap = 10s;
  start_timed(patient);
  ASSERT_TRUE(timer_.eventually_waits_for(1h, 2h));
  EXPECT_EQ(watches_, 1);
  EXPECT_EQ(lists_, 1);
  ASSERT_TRUE(timer_.end_wait());
  EXPECT_EQ(lists_, 2);
}

TEST_F(ApiServerTest, GivesUpAWatchThatOutlivesItsTime) {
  serve(lists("3", {}), idle);
  ApiServerOptions brief = options();
  brief.watch_shortest = brief.watch_longest = 1s;
  brief.watch_grace = 2s;  // the server has this time to accept the watch
  start_timed(brief);
  ASSERT_TRUE(timer_.eventually_waits());
  EXPECT_TRUE(has(requests(true).at(0), "timeoutSeconds=1"));
  EXPECT_EQ(watches_, 1);
  EXPECT_EQ(errors("timeout"), 1u);
  EXPECT_TRUE(source_->health().up);
  timer_.advance(1s);
  EXPECT_TRUE(eventually([&] { return watches_ == 2; }));
}

TEST_F(ApiServerTest, ReadsTheAuthorityAnew) {
  serve(lists("1", {pod_text("a")}), idle);
  ApiServerOptions rotated = options();
  rotated.account.ca_file = folder_.write("rotating.crt", http::make_authority("before").cert);
  start(rotated);
  ASSERT_TRUE(eventually([&] { return errors("malformed") >= 1; }));
  EXPECT_THAT(source_->health().reason, HasSubstr("certificate is refused"));
  EXPECT_EQ(lists_, 0) << "no token for strangers";
  folder_.write("rotating.crt", authority_.cert);
  EXPECT_TRUE(eventually([&] { return source_->health().up; }));
}

}  // namespace
}  // namespace gpuledger::identity
