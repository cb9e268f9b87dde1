// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/cri.h"

#include <gtest/gtest.h>

#include <atomic>

#include "support/manual_timer.h"
#include "unit/identity/sources/fake_grpc_server.h"
#include "unit/identity/sources/wire_bytes.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;

constexpr const char* kSandboxes = "/runtime.v1.RuntimeService/ListPodSandbox";
constexpr const char* kContainers = "/runtime.v1.RuntimeService/ListContainers";

struct SandboxBytes {
  std::string id;
  std::string name = {};
  std::string uid = {};
  bool ready = true;
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> annotations = {};
  bool has_metadata = true;
};

std::string bytes(const SandboxBytes& one) {
  std::string out = wire_field(1, one.id);
  if (one.has_metadata) out += wire_field(2, wire_field(1, one.name) + wire_field(2, one.uid) + wire_field(3, "ml"));
  if (!one.ready) out += wire_number(3, 1);
  out += wire_number(4, 1700000000) + wire_map(5, one.labels) + wire_map(6, one.annotations) + wire_field(7, "nvidia");
  return wire_field(1, out);
}

std::string container(const std::string& id, const std::string& sandbox, const std::string& name, int state = 1) {
  return wire_field(1, wire_field(1, id) + wire_field(2, sandbox) +
                           wire_field(3, wire_field(1, name) + wire_number(2, 1)) + wire_field(5, "sha256:1") +
                           wire_number(6, static_cast<uint64_t>(state)) +
                           wire_map(8, {{"io.kubernetes.container.name", "by-label"}}));
}

FakeGrpcServer::Reply reply(std::string message) {
  return {{std::move(message)}, 0, {}, false};
}

CriPods::Options quick(const FakeGrpcServer& server) {
  CriPods::Options options;
  options.socket = server.socket();
  options.period = 50ms;
  options.deadline = 1min;
  options.labels = {"team"};
  return options;
}

TEST(CriPods, PodsAndTheirContainers) {
  FakeGrpcServer server;
  server.answer(kSandboxes, reply(bytes({.id = "s1",
                                         .name = "train",
                                         .uid = "u1",
                                         .labels = {{"team", "red"}, {"x", "y"}},
                                         .annotations = {{"hami.io/vgpu-devices-allocated", "GPU-1"}}}) +
                                  bytes({.id = "s2", .name = "gone", .uid = "u2", .ready = false}) +
                                  bytes({.id = "s3",
                                         .labels = {{"io.kubernetes.pod.name", "labelled"},
                                                    {"io.kubernetes.pod.namespace", "web"},
                                                    {"io.kubernetes.pod.uid", "u3"}},
                                         .has_metadata = false}) +
                                  bytes({.id = "s4", .has_metadata = false})));
  server.answer(kContainers,
                reply(container("c1", "s1", "pytorch") + container("c0", "s1", "pytorch", 2) +
                      container("c2", "s2", "old") + container("c3", "s3", "") + container("c4", "unknown", "x")));
  server.start();
  const CriPods source(quick(server));
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  const auto view = source.view();
  ASSERT_EQ(view->pods().size(), 2u);
  const Pod* train = view->by_uid("u1");
  ASSERT_NE(train, nullptr);
  EXPECT_EQ(train->name_space + "/" + train->name, "ml/train");
  EXPECT_EQ(train->labels, (std::map<std::string, std::string>{{"team", "red"}}));
  EXPECT_EQ(train->hami_devices, "GPU-1");
  EXPECT_EQ(view->by_container_id("c1").container->name, "pytorch");
  EXPECT_EQ(view->by_container_id("c0").container->name, "pytorch") << "it ended, its last samples need the name";
  EXPECT_EQ(view->by_name("web", "labelled")->uid, "u3");
  EXPECT_EQ(view->by_container_id("c3").container->name, "by-label");
  EXPECT_EQ(view->by_container_id("c2").pod, nullptr);
  EXPECT_GT(source.health().errors["malformed"], 0u);
}

TEST(CriPods, APodMadeAnewUnderTheSameName) {
  FakeGrpcServer server;
  std::atomic<bool> anew = false;
  server.answer(kSandboxes, [&] {
    return reply(bytes({.id = "s1", .name = "a", .uid = "u1", .ready = !anew}) +
                 (anew ? bytes({.id = "s2", .name = "a", .uid = "u2"}) : std::string()));
  });
  server.answer(kContainers, [&] {
    return reply(container("c1", "s1", "main", anew ? 2 : 1) + (anew ? container("c2", "s2", "main") : std::string()));
  });
  server.start();
  const CriPods source(quick(server));
  ASSERT_TRUE(eventually([&] { return source.view() != nullptr; }));
  anew = true;
  ASSERT_TRUE(eventually([&] { return source.view()->by_uid("u2") != nullptr; }));
  EXPECT_EQ(source.view()->by_name("ml", "a")->uid, "u2");
  EXPECT_EQ(source.view()->by_container_id("c1").pod->uid, "u1");
  EXPECT_EQ(source.view()->by_container_id("c2").pod->uid, "u2");
}

TEST(CriPods, StaticPodsByTheUidTheirCgroupsCarry) {
  FakeGrpcServer server;
  const std::string hash = "0123456789abcdef0123456789abcdef";
  server.answer(
      kSandboxes,
      reply(
          bytes({.id = "s1", .name = "etcd-node", .uid = hash, .annotations = {{"kubernetes.io/config.hash", hash}}})));
  server.answer(kContainers, reply(container("c1", "s1", "etcd")));
  server.start();
  const CriPods source(quick(server));
  ASSERT_TRUE(eventually([&] { return source.view() != nullptr; }));
  EXPECT_EQ(source.view()->by_uid(hash)->name, "etcd-node");
}

TEST(CriPods, MovesOnFromASocketWithoutCri) {
  FakeGrpcServer docker;  // containerd without its CRI part, as docker installs it
  docker.start();
  FakeGrpcServer server;
  server.answer(kSandboxes, reply(bytes({.id = "s1", .name = "a", .uid = "u1"})));
  server.answer(kContainers, reply(""));
  server.start();
  auto options = quick(server);
  options.socket.clear();
  options.usual_sockets = {"/nowhere/a.sock", docker.socket(), server.socket()};
  const CriPods source(options);
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  EXPECT_EQ(source.health().errors["unimplemented"], 1u);
  EXPECT_EQ(source.view()->by_uid("u1")->name, "a");
}

TEST(CriPods, NoRuntime) {
  CriPods::Options options;
  options.usual_sockets = {"/nowhere/a.sock", "/nowhere/b.sock"};
  const CriPods source(options);
  ASSERT_TRUE(eventually([&] { return source.health().errors["no_socket"] > 0; }));
  EXPECT_NE(source.health().reason.find("usual places"), std::string::npos) << source.health().reason;
  EXPECT_EQ(source.view(), nullptr);
}

TEST(CriPods, RuntimeRestarts) {
  FakeGrpcServer server;
  server.answer(kSandboxes, reply(bytes({.id = "s1", .name = "a", .uid = "u1"})));
  server.answer(kContainers, reply(container("c1", "s1", "main")));
  server.start();
  const CriPods source(quick(server));
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  server.stop();
  ASSERT_TRUE(eventually([&] { return !source.health().up; }));
  EXPECT_EQ(source.view()->by_container_id("c1").pod->name, "a");
  server.start();
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
}

TEST(CriPods, SecondListFails) {
  FakeGrpcServer server;
  server.answer(kSandboxes, reply(bytes({.id = "s1", .name = "a", .uid = "u1"})));
  server.answer(kContainers, reply("\xff\xff\xff garbage"));
  server.start();
  const CriPods source(quick(server));
  ASSERT_TRUE(eventually([&] { return source.health().errors["malformed"] > 0; }));
  EXPECT_EQ(source.view(), nullptr) << "pods without containers are half an answer";
}

TEST(CriPods, LooksAgainWhenAsked) {
  FakeGrpcServer server;
  server.answer(kSandboxes, reply(""));
  server.answer(kContainers, reply(""));
  server.start();
  ManualTimer timer;
  auto options = quick(server);
  options.timer = &timer;
  options.period = 1h;
  CriPods source(options);
  ASSERT_TRUE(timer.eventually_waits_for(1h));
  EXPECT_TRUE(source.health().up);
  source.look_again();
  ASSERT_TRUE(timer.eventually_waits_for(1s));
  ASSERT_TRUE(timer.end_wait());
  EXPECT_EQ(server.calls(kSandboxes), 2);
}

}  // namespace
}  // namespace gpuledger::identity
