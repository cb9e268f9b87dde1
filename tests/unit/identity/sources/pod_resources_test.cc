// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/pod_resources.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>

#include "support/manual_timer.h"
#include "unit/identity/sources/fake_grpc_server.h"
#include "unit/identity/sources/wire_bytes.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;

constexpr const char* kList = "/v1.PodResourcesLister/List";
constexpr const char* kOldList = "/v1alpha1.PodResourcesLister/List";
constexpr const char* kAllocatable = "/v1.PodResourcesLister/GetAllocatableResources";

std::string devices(const std::string& resource, const std::vector<std::string>& ids) {
  std::string out = wire_field(1, resource);
  for (const auto& id : ids) out += wire_field(2, id);
  return out + wire_field(3, wire_field(1, wire_number(1, 0)));  // the topology
}

std::string container(const std::string& name, const std::string& devices_bytes) {
  return wire_field(1, name) + wire_field(2, devices_bytes) + wire_field(3, "\x01\x02") /* cpu ids */;
}

std::string pod(const std::string& name, const std::string& container_bytes) {
  return wire_field(1, wire_field(1, name) + wire_field(2, "ml") + wire_field(3, container_bytes));
}

std::string one_pod(const std::string& name, const std::string& id) {
  return pod(name, container("main", devices("nvidia.com/gpu", {id})));
}

FakeGrpcServer::Reply bytes(std::string message) {
  return {{std::move(message)}, 0, {}, false};
}

PodResources::Options quick_resources(const FakeGrpcServer& server) {
  PodResources::Options options;
  options.socket = server.socket();
  options.period = 50ms;
  options.deadline = 1min;
  return options;
}

PodResources::Options timed(const FakeGrpcServer& server, const ManualTimer& timer) {
  auto options = quick_resources(server);
  options.timer = &timer;
  options.period = 1h;
  return options;
}

std::vector<std::string> ids_of(const PodResources& source) {
  std::vector<std::string> ids;
  if (const auto view = source.view()) {
    for (const auto& grant : view->grants) ids.push_back(grant.device_id);
  }
  return ids;
}

TEST(PodResources, GrantsOfGpusOnly) {
  FakeGrpcServer server;
  const std::string claim = wire_field(1, wire_field(1, "cdi")) + wire_field(2, "gpu.nvidia.com") +
                            wire_field(3, "node-1") + wire_field(4, "gpu-3") + wire_field(5, "share");
  const std::string other_claim = wire_field(2, "nic.example.com") + wire_field(4, "nic-0");
  const std::string dynamic =
      wire_field(5, wire_field(2, "claim") + wire_field(3, "ml") + wire_field(4, claim) + wire_field(4, other_claim));
  server.answer(kList, bytes(pod("train", container("main", devices("nvidia.com/gpu", {"GPU-1::0", "GPU-2"}))) +
                             pod("mig", container("main", devices("nvidia.com/mig-1g.5gb.shared", {"MIG-1::2"}))) +
                             pod("net", container("main", devices("example.com/nic", {"nic0"}))) +
                             pod("own", container("main", devices("example.com/accelerator", {"GPU-9"}))) +
                             pod("dra", wire_field(1, "main") + dynamic)));
  server.answer(kAllocatable, bytes(wire_field(1, devices("nvidia.com/gpu", {"GPU-1::0", "GPU-1::1"})) +
                                    wire_field(1, devices("example.com/nic", {"nic0"}))));
  server.start();
  auto options = quick_resources(server);
  options.more_resources = {"example.com/accelerator"};
  const PodResources source(options);
  ASSERT_TRUE(eventually([&] { return source.view() != nullptr; }));
  const auto view = source.view();
  ASSERT_EQ(view->grants.size(), 5u);
  const auto& first = view->grants[0];
  EXPECT_EQ(first.name_space + "/" + first.pod + "/" + first.container, "ml/train/main");
  EXPECT_EQ(first.resource, "nvidia.com/gpu");
  EXPECT_EQ(ids_of(source), (std::vector<std::string>{"GPU-1::0", "GPU-2", "MIG-1::2", "GPU-9", "gpu-3"}));
  EXPECT_EQ(view->grants[4].resource, "gpu.nvidia.com");
  EXPECT_EQ(view->allocatable, (std::vector<std::string>{"GPU-1::0", "GPU-1::1"}));
  EXPECT_TRUE(source.health().up);
  EXPECT_TRUE(source.health().errors.empty());
  EXPECT_EQ(server.last_authority(), "localhost");
}

TEST(PodResources, NodeWithoutPods) {
  FakeGrpcServer server;
  server.answer(kList, bytes(""));
  server.start();
  const PodResources source(quick_resources(server));
  ASSERT_TRUE(eventually([&] { return source.view() != nullptr; }));
  EXPECT_TRUE(source.health().up);
  EXPECT_TRUE(source.view()->grants.empty());
}

TEST(PodResources, OldKubeletUntilItIsANewOne) {
  FakeGrpcServer server;
  server.answer(kOldList, bytes(one_pod("old", "GPU-1")));
  server.start();
  const PodResources source(quick_resources(server));
  ASSERT_TRUE(eventually([&] { return server.calls(kOldList) >= 3; }));
  EXPECT_EQ(ids_of(source), std::vector<std::string>{"GPU-1"});
  EXPECT_EQ(server.calls(kList), 1) << "asked again for what it does not have";
  EXPECT_EQ(server.calls(kAllocatable), 0);
  EXPECT_TRUE(source.health().up);
  server.stop();
  server.answer(kList, bytes(one_pod("new", "GPU-2")));
  server.start();
  ASSERT_TRUE(eventually([&] { return ids_of(source) == std::vector<std::string>{"GPU-2"}; }));
}

TEST(PodResources, NoAllocatableIsNoError) {
  for (const int status : {12, static_cast<int>(kUnknown)}) {
    FakeGrpcServer server;
    server.answer(kList, bytes(one_pod("a", "GPU-1")));
    server.answer(kAllocatable, FakeGrpcServer::Reply{{}, status, "switched off", false});
    server.start();
    const PodResources source(quick_resources(server));
    ASSERT_TRUE(eventually([&] { return server.calls(kList) >= 3; }));
    EXPECT_EQ(server.calls(kAllocatable), 1);
    EXPECT_TRUE(source.health().up);
    EXPECT_TRUE(source.health().errors.empty());
  }
}

TEST(PodResources, NoServiceAtAll) {
  FakeGrpcServer server;
  server.start();
  const PodResources source(quick_resources(server));
  ASSERT_TRUE(eventually([&] { return source.health().errors["unimplemented"] > 0; }));
  EXPECT_FALSE(source.health().up);
  EXPECT_EQ(source.view(), nullptr);
}

TEST(PodResources, TurnedAwayKeepsTheViewAndWaits) {
  FakeGrpcServer server;
  std::atomic<bool> limited = false;
  server.answer(kList, [&] {
    if (limited) return FakeGrpcServer::Reply{{}, kResourceExhausted, "rejected by rate limit", false};
    return bytes(one_pod("a", "GPU-1"));
  });
  server.start();
  ManualTimer timer;
  PodResources source(timed(server, timer));
  ASSERT_TRUE(timer.eventually_waits_for(1h));
  ASSERT_NE(source.view(), nullptr);
  limited = true;
  for (uint64_t i = 1; i < 4; ++i) {
    ASSERT_TRUE(timer.end_wait());
    EXPECT_EQ(source.health().errors["rate_limited"], i);
    EXPECT_TRUE(source.health().up) << "now and then is nobody's fault";
    source.look_again();
    EXPECT_TRUE(timer.stays()) << "asking does not undo the back-off";
  }
  ASSERT_TRUE(timer.end_wait());
  EXPECT_FALSE(source.health().up);
  EXPECT_EQ(source.health().errors["rate_limited"], 4u);
  EXPECT_EQ(ids_of(source), std::vector<std::string>{"GPU-1"});
  limited = false;
  ASSERT_TRUE(timer.end_wait());
  EXPECT_TRUE(source.health().up);
}

TEST(PodResources, KubeletRestarts) {
  FakeGrpcServer server;
  server.answer(kList, bytes(one_pod("a", "GPU-1")));
  server.start();
  const PodResources source(quick_resources(server));
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  server.stop();
  ASSERT_TRUE(eventually([&] { return !source.health().up; }));
  EXPECT_EQ(ids_of(source), std::vector<std::string>{"GPU-1"});
  ASSERT_TRUE(eventually([&] { return source.health().errors["no_socket"] > 0; }));
  EXPECT_NE(source.health().reason.find("mount the folder " + server.socket().substr(0, server.socket().rfind('/'))),
            std::string::npos)
      << source.health().reason;
  server.answer(kList, bytes(one_pod("b", "GPU-2")));
  server.start();
  ASSERT_TRUE(eventually([&] { return ids_of(source) == std::vector<std::string>{"GPU-2"}; }));
  EXPECT_TRUE(source.health().up);
}

TEST(PodResources, SocketOfADeadKubelet) {
  FakeGrpcServer server;
  server.start();
  const std::string other = server.socket() + ".old";
  ASSERT_EQ(::link(server.socket().c_str(), other.c_str()), 0);  // survives, as a mounted file does
  server.stop();
  auto options = quick_resources(server);
  options.socket = other;
  const PodResources source(options);
  ASSERT_TRUE(eventually([&] { return source.health().errors["unavailable"] > 0; }));
  EXPECT_NE(source.health().reason.find("refused"), std::string::npos) << source.health().reason;
}

TEST(PodResources, ServerThatNeverAnswers) {
  FakeGrpcServer server;
  server.answer(kList, FakeGrpcServer::Reply{{}, 0, {}, true});
  server.start();
  auto options = quick_resources(server);
  options.deadline = 100ms;
  const PodResources source(options);
  ASSERT_TRUE(eventually([&] { return source.health().errors["deadline_exceeded"] > 0; }));
  EXPECT_FALSE(source.health().up);
}

// Only the stop can end the call: the server holds it.
TEST(PodResources, EndsInTheMiddleOfACall) {
  FakeGrpcServer server;
  server.answer(kList, FakeGrpcServer::Reply{{}, 0, {}, true});
  server.start();
  auto options = quick_resources(server);
  options.deadline = 5h;
  const PodResources source(options);
  ASSERT_TRUE(eventually([&] { return server.calls(kList) == 1; }));
}

TEST(PodResources, EndsWhereNobodyGreets) {
  FakeGrpcServer folder;
  // A socket that listens and accepts nobody.
  auto options = quick_resources(folder);
  options.deadline = options.connect_within = 5h;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  options.socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  {
    const PodResources source(options);
    pollfd knock{fd, POLLIN, 0};
    ASSERT_EQ(::poll(&knock, 1, 60'000), 1) << "nobody came";
  }
  ::close(fd);
}

TEST(PodResources, AnswersNobodyCanRead) {
  FakeGrpcServer server;
  std::atomic<int> turn = 0;
  server.answer(kList, [&]() -> FakeGrpcServer::Reply {
    switch (turn++) {
      case 0: return bytes("\xff\xff\xff\xff garbage");
      case 1: return bytes(std::string(2 << 20, '\0'));
      case 2: return {{}, 0, {}, false};                 // no message at all
      case 3: return bytes("\x0a\xff\xff\xff\xff\x0f");  // a pod of 4 GiB less one byte
      default: return bytes(pod("odd\xff", container("main", devices("nvidia.com/gpu", {"GPU-1"}))));
    }
  });
  server.start();
  auto options = quick_resources(server);
  options.largest_answer = 1 << 20;
  const PodResources source(options);
  ASSERT_TRUE(eventually([&] { return source.view() != nullptr; }));
  EXPECT_TRUE(source.health().up);
  EXPECT_EQ(source.health().errors["malformed"], 3u);
  EXPECT_EQ(source.health().errors["too_large"], 1u);
  EXPECT_EQ(source.view()->grants.at(0).pod, "odd\xef\xbf\xbd");
}

TEST(PodResources, LooksAgainAtMostOnceASecond) {
  FakeGrpcServer server;
  server.answer(kList, bytes(one_pod("a", "GPU-1")));
  server.start();
  ManualTimer timer;
  PodResources source(timed(server, timer));
  for (int looks = 1; looks < 4; ++looks) {
    ASSERT_TRUE(timer.eventually_waits_for(1h));
    EXPECT_EQ(server.calls(kList), looks);
    source.look_again();
    ASSERT_TRUE(timer.eventually_waits_for(1s));
    source.look_again();
    timer.advance(900ms);
    ASSERT_TRUE(timer.stays());
    EXPECT_EQ(server.calls(kList), looks);
    ASSERT_TRUE(timer.end_wait());
  }
}

}  // namespace
}  // namespace gpuledger::identity
