// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/pods_api.h"

#include <gtest/gtest.h>

#include <atomic>

#include "support/manual_timer.h"
#include "support/thread_limit.h"
#include "unit/identity/sources/fake_grpc_server.h"
#include "unit/identity/sources/pod_bytes.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;

constexpr const char* kWatch = "/v1alpha1.Pods/WatchPods";
enum EventType { kAdded = 1, kModified = 2, kDeleted = 3, kFirstListComplete = 4 };

std::string event(int type, const std::string& pod = {}) {
  return wire_number(1, static_cast<uint64_t>(type)) + (pod.empty() ? std::string() : wire_field(2, pod));
}

PodBytes watched_pod(const std::string& name, const std::string& container_id = "containerd://id") {
  return {.name = name, .uid = "uid-" + name, .containers = {{"main", container_id}}};
}

FakeGrpcServer::Reply list_of(const std::vector<PodBytes>& pods) {
  FakeGrpcServer::Reply reply{{}, 0, {}, true};
  for (const auto& one : pods) reply.messages.push_back(event(kAdded, one.bytes()));
  reply.messages.push_back(event(kFirstListComplete));
  return reply;
}

PodsApi::Options quick_pods(const FakeGrpcServer& server) {
  PodsApi::Options options;
  options.socket = server.socket();
  options.publish_every = 20ms;
  options.pace = {.first = 20ms, .longest = 100ms};
  return options;
}

bool knows(const PodsApi& source, const std::string& name) {
  const auto view = source.view();
  return view && view->by_name("ml", name) != nullptr;
}

TEST(PodsApi, FirstListThenChanges) {
  FakeGrpcServer server;
  server.answer(kWatch, list_of({watched_pod("a", "containerd://a1"), watched_pod("b")}));
  server.start();
  PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  EXPECT_TRUE(knows(source, "a") && knows(source, "b"));
  EXPECT_EQ(server.last_authority(), "localhost");

  server.send(event(kAdded, watched_pod("c").bytes()));
  ASSERT_TRUE(eventually([&] { return knows(source, "c"); }));

  PodBytes restarted = watched_pod("a", "containerd://a2");
  restarted.last_id = "containerd://a1";
  server.send(event(kModified, restarted.bytes()));
  ASSERT_TRUE(eventually([&] { return source.view()->by_container_id("a2").container != nullptr; }));
  EXPECT_EQ(source.view()->by_container_id("a1").pod->name, "a");
  EXPECT_TRUE(source.health().errors.empty());
}

TEST(PodsApi, NothingIsShownOfHalfAList) {
  FakeGrpcServer server;
  server.answer(kWatch, FakeGrpcServer::Reply{{event(kAdded, watched_pod("a").bytes())}, 0, {}, true});
  server.start();
  ManualTimer timer;
  auto options = quick_pods(server);
  options.timer = &timer;
  PodsApi source(options);
  // Events that cannot be read are counted: what came before the last of them is worked through.
  for (uint64_t i = 1; i < 3; ++i) {
    ASSERT_TRUE(eventually([&] { return server.calls(kWatch) == 1; }));
    server.send("\xff\xff\xff garbage");
    ASSERT_TRUE(eventually([&] { return source.health().errors["malformed"] == i; }));
    timer.advance(1s);
  }
  EXPECT_EQ(source.view(), nullptr);
  EXPECT_FALSE(source.health().up);
  // Deleted while the list is still being sent.
  server.send(event(kAdded, watched_pod("b").bytes()));
  server.send(event(kDeleted, watched_pod("a").metadata_only()));
  server.send(event(kFirstListComplete));
  ASSERT_TRUE(eventually([&] { return knows(source, "b"); }));
  EXPECT_FALSE(knows(source, "a"));
}

TEST(PodsApi, NodeWithoutPods) {
  FakeGrpcServer server;
  server.answer(kWatch, list_of({}));
  server.start();
  PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  EXPECT_TRUE(source.view()->pods().empty());
}

TEST(PodsApi, DeletedPodsKeepTheirNameUntilANewOneTakesIt) {
  FakeGrpcServer server;
  server.answer(kWatch, list_of({watched_pod("a")}));
  server.start();
  PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return knows(source, "a"); }));
  server.send(event(kDeleted, watched_pod("a").metadata_only()));
  PodBytes again = watched_pod("a", "containerd://new");
  again.uid = "uid-second";
  server.send(event(kAdded, again.bytes()));
  ASSERT_TRUE(eventually([&] { return source.view()->by_name("ml", "a")->uid == "uid-second"; }));
  EXPECT_EQ(source.view()->by_uid("uid-a")->name, "a");
  EXPECT_EQ(source.view()->by_container_id("id").pod->uid, "uid-a") << "its processes may still be ending";
}

TEST(PodsApi, KubeletRestartsAndPodsAreGoneMeanwhile) {
  FakeGrpcServer server;
  server.answer(kWatch, list_of({watched_pod("a"), watched_pod("b")}));
  server.start();
  PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return knows(source, "b"); }));
  server.stop();
  ASSERT_TRUE(eventually([&] { return !source.health().up; }));
  EXPECT_TRUE(knows(source, "a")) << "names must not flap";
  ASSERT_TRUE(eventually([&] { return source.health().errors["no_socket"] > 0; }));
  EXPECT_NE(source.health().reason.find("1.37"), std::string::npos) << source.health().reason;
  PodBytes again = watched_pod("a");
  again.uid = "uid-second";
  server.answer(kWatch, list_of({again}));
  server.start();
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  // The old "a" was not in the new list, so the new one has the name.
  EXPECT_EQ(source.view()->by_name("ml", "a")->uid, "uid-second");
}

TEST(PodsApi, AStreamThatEndsIsBegunAnew) {
  FakeGrpcServer server;
  server.answer(kWatch, list_of({watched_pod("a")}));
  server.start();
  PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return knows(source, "a"); }));
  server.answer(kWatch, list_of({watched_pod("a"), watched_pod("b")}));
  server.end_open_calls(0);
  ASSERT_TRUE(eventually([&] { return knows(source, "b"); }));
  EXPECT_TRUE(source.health().up);
  EXPECT_EQ(source.health().errors["stream_ended"], 1u);
}

TEST(PodsApi, KubeletThatIsStarting) {
  FakeGrpcServer server;
  std::atomic<bool> starting = true;
  server.answer(kWatch, [&]() -> FakeGrpcServer::Reply {
    if (starting) return {{}, kFailedPrecondition, "not ready", false};
    return list_of({watched_pod("a")});
  });
  server.start();
  PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return source.health().errors["failed_precondition"] >= 2; }));
  EXPECT_EQ(source.health().reason, "the kubelet is still starting");
  starting = false;
  ASSERT_TRUE(eventually([&] { return knows(source, "a"); }));
}

TEST(PodsApi, KubeletWithoutIt) {
  FakeGrpcServer server;
  server.start();
  PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return source.health().errors["unimplemented"] > 0; }));
  EXPECT_EQ(source.view(), nullptr);
}

TEST(PodsApi, BadEventsAreCountedAndSkipped) {
  FakeGrpcServer server;
  auto reply = list_of({watched_pod("a")});
  reply.messages.insert(reply.messages.begin(),
                        {"\xff\xff\xff garbage", event(kAdded, "\xff\xff"), event(kAdded, watched_pod("").bytes()),
                         event(9, watched_pod("x").bytes()), ""});
  server.answer(kWatch, reply);
  server.start();
  PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return knows(source, "a"); }));
  EXPECT_EQ(source.health().errors["malformed"], 3u);
  EXPECT_EQ(source.view()->pods().size(), 1u);
}

TEST(PodsApi, AListThatNeverEnds) {
  FakeGrpcServer server;
  server.answer(kWatch, FakeGrpcServer::Reply{{event(kAdded, watched_pod("a").bytes())}, 0, {}, true});
  server.start();
  auto options = quick_pods(server);
  options.first_list = 100ms;
  PodsApi source(options);
  ASSERT_TRUE(eventually([&] { return source.health().errors["deadline_exceeded"] > 0; }));
}

TEST(PodsApi, AMessageThatIsTooLarge) {
  FakeGrpcServer server;
  auto reply = list_of({});
  reply.messages.insert(reply.messages.begin(), std::string(2 << 20, '\0'));
  server.answer(kWatch, reply);
  server.start();
  auto options = quick_pods(server);
  options.largest_message = 1 << 20;
  PodsApi source(options);
  ASSERT_TRUE(eventually([&] { return source.health().errors["too_large"] > 0; }));
  EXPECT_EQ(source.view(), nullptr);
}

// Only the stop can end the stream: the server holds it.
TEST(PodsApi, EndsWithAStreamOpen) {
  FakeGrpcServer server;
  server.answer(kWatch, list_of({watched_pod("a")}));
  server.start();
  const PodsApi source(quick_pods(server));
  ASSERT_TRUE(eventually([&] { return knows(source, "a"); }));
}

TEST(PodsApi, EndsWhileItWaits) {
  PodsApi::Options options;
  options.socket = "/nowhere/a.sock";
  options.pace = {.first = 5h, .longest = 5h};
  const PodsApi source(options);
  ASSERT_TRUE(eventually([&] { return source.health().errors["no_socket"] > 0; }));
}

// AutoPods takes another choice then, and tries this one again.
TEST(PodsApiDeathTest, IsDownWithoutAThread) {
  EXPECT_TRUE(support::passes_without_threads([] {
    const PodsApi source(PodsApi::Options{});
    EXPECT_EQ(source.view(), nullptr);
    EXPECT_FALSE(source.health().up);
    EXPECT_EQ(source.health().errors["no_thread"], 1u);
  }));
}

}  // namespace
}  // namespace gpuledger::identity
