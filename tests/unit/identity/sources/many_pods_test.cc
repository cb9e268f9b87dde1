// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "identity/sources/cri.h"
#include "identity/sources/pod_resources.h"
#include "identity/sources/pods_api.h"
#include "support/manual_timer.h"
#include "unit/identity/sources/fake_grpc_server.h"
#include "unit/identity/sources/pod_bytes.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;

constexpr int kPods = 500;
constexpr long kMostBytes = 5'000'000;

PodBytes pod(int number) {
  const std::string text = std::to_string(number);
  PodBytes one{.name = "trainer-with-a-usual-name-7d9c5b8f6-" + text,
               .uid = "11111111-2222-3333-4444-" + std::string(12 - text.size(), '0') + text,
               .containers = {{"main", "containerd://" + std::string(64 - text.size(), 'a') + text},
                              {"sidecar", "containerd://" + std::string(64 - text.size(), 'b') + text}},
               .labels = {{"team", "red"}}};
  // The rest of what makes a pod about 8 kB: other labels and annotations here, the environment as a long one.
  for (int i = 0; i < 10; ++i) one.labels["label.example.com/" + std::to_string(i)] = std::string(40, 'l');
  one.annotations["kubectl.kubernetes.io/last-applied-configuration"] = std::string(6000, 'j');
  return one;
}

FakeGrpcServer::Reply watch_of(int pods) {
  FakeGrpcServer::Reply reply{{}, 0, {}, true};
  for (int i = 0; i < pods; ++i) reply.messages.push_back(wire_number(1, 1) + wire_field(2, pod(i).bytes()));
  reply.messages.push_back(wire_number(1, 4));
  return reply;
}

FakeGrpcServer::Reply sandboxes_of(int pods) {
  std::string out;
  for (int i = 0; i < pods; ++i) {
    const PodBytes one = pod(i);
    out += wire_field(1, wire_field(1, "sandbox-" + std::to_string(i)) +
                             wire_field(2, wire_field(1, one.name) + wire_field(2, one.uid) + wire_field(3, "ml")) +
                             wire_map(5, one.labels) + wire_map(6, {{"seen", std::string(300, 's')}}));
  }
  return {{out}, 0, {}, false};
}

FakeGrpcServer::Reply containers_of(int pods) {
  std::string out;
  for (int i = 0; i < pods; ++i) {
    for (const auto& [name, id] : pod(i).containers) {
      out += wire_field(1, wire_field(1, id.substr(13)) + wire_field(2, "sandbox-" + std::to_string(i)) +
                               wire_field(3, wire_field(1, name)) + wire_map(8, pod(i).labels) +
                               wire_map(9, {{"annotation", std::string(300, 'a')}}));
    }
  }
  return {{out}, 0, {}, false};
}

// Servers in a process of their own, or their memory would be counted with ours. Begun before gRPC has threads.
class ServerProcess {
 public:
  ServerProcess() {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    child_ = ::fork();
    if (child_ == 0) {
      ::alarm(600);  // only if the parent was killed
      serve(ends[1]);
    }
    ::close(ends[1]);
    std::FILE* in = ::fdopen(ends[0], "r");
    for (std::string* socket : {&empty, &full, &hostile}) {
      char line[200];
      if (std::fgets(line, sizeof(line), in) == nullptr) std::abort();
      *socket = std::string(line, std::string(line).find('\n'));
    }
    std::fclose(in);
  }
  ~ServerProcess() {
    ::kill(child_, SIGTERM);
    ::waitpid(child_, nullptr, 0);
  }

  std::string empty;
  std::string full;
  std::string hostile;  // answers with 200 MB

 private:
  [[noreturn]] static void serve(int out) {
    sigset_t wait_for;
    sigemptyset(&wait_for);
    sigaddset(&wait_for, SIGTERM);
    sigaddset(&wait_for, SIGALRM);
    sigprocmask(SIG_BLOCK, &wait_for, nullptr);
    {
      FakeGrpcServer servers[3];
      for (int i = 0; i < 2; ++i) {
        servers[i].answer("/v1alpha1.Pods/WatchPods", watch_of(i * kPods));
        servers[i].answer("/runtime.v1.RuntimeService/ListPodSandbox", sandboxes_of(i * kPods));
        servers[i].answer("/runtime.v1.RuntimeService/ListContainers", containers_of(i * kPods));
        servers[i].start();
        ::dprintf(out, "%s\n", servers[i].socket().c_str());
      }
      servers[1].answer(
          "/v1.PodResourcesLister/List",
          {{wire_field(1, wire_field(1, "large") + wire_field(15, std::string(16'700'000, 'x')))}, 0, {}, false});
      servers[2].answer("/v1.PodResourcesLister/List", [] {
        return FakeGrpcServer::Reply{{std::string(200'000'000, '\0')}, 0, {}, false};
      });
      servers[2].start();
      ::dprintf(out, "%s\n", servers[2].socket().c_str());
      int signal = 0;
      sigwait(&wait_for, &signal);
    }
    ::_exit(0);
  }

  pid_t child_ = 0;
};

ServerProcess* servers;  // made in main, before the first test

long resident_bytes() {
  long total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

void expect_small(const char* what, long before) {
  const long grown = resident_bytes() - before;
  std::printf("%s: %d pods take %ld kB, the process has %ld kB\n", what, kPods, grown / 1000, resident_bytes() / 1000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(grown, kMostBytes);
#endif
}

TEST(ManyPods, PodsApi) {
  PodsApi::Options options;
  options.labels = {"team"};
  options.socket = servers->empty;
  const PodsApi none(options);
  ASSERT_TRUE(eventually([&] { return none.health().up; }));
  const long before = resident_bytes();
  options.socket = servers->full;
  const PodsApi source(options);
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  ASSERT_EQ(source.view()->pods().size(), size_t{kPods});
  expect_small("Pods API", before);
}

TEST(ManyPods, Cri) {
  CriPods::Options options;
  options.labels = {"team"};
  options.period = 20ms;
  options.socket = servers->empty;
  const CriPods none(options);
  ASSERT_TRUE(eventually([&] { return none.health().up; }));
  const long before = resident_bytes();
  options.socket = servers->full;
  const CriPods source(options);
  ASSERT_TRUE(eventually([&] { return source.health().up; }));
  ASSERT_EQ(source.view()->pods().size(), size_t{kPods});
  ASSERT_EQ(source.view()->pods().front()->containers.size(), 2u);
  const auto first = source.view();
  ASSERT_TRUE(eventually([&] { return source.view() != first; }));  // with the old view still in somebody's hands
  expect_small("CRI", before);
}

TEST(ManyPods, AnAnswerThatIsTooLargeIsNotReadToItsEnd) {
  PodResources::Options options;
  options.socket = servers->hostile;
  options.deadline = 1min;
  const long before = resident_bytes();
  const PodResources source(options);
  long most = 0;
  ASSERT_TRUE(eventually([&] {
    most = std::max(most, resident_bytes());
    return !source.health().errors.empty();
  }));
  EXPECT_EQ(source.health().errors.begin()->first, "too_large");
  std::printf("an answer of 200 MB: %s, took %ld kB\n", source.health().errors.begin()->first.c_str(),
              (most - before) / 1000);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(most - before, 60'000'000);
#endif
}

// The memory of the first answer may not be free yet when the second comes. There is no room for a third.
TEST(ManyPods, TwoAnswersOfJustTheSizeAreRead) {
  ManualTimer timer;
  PodResources::Options options;
  options.socket = servers->full;
  options.deadline = 1min;
  options.timer = &timer;
  const PodResources source(options);
  ASSERT_TRUE(timer.eventually_waits());
  const auto first = source.view();
  EXPECT_NE(first, nullptr);
  ASSERT_TRUE(timer.end_wait());
  EXPECT_NE(source.view(), first);
  EXPECT_TRUE(source.health().up);
  EXPECT_TRUE(source.health().errors.empty()) << source.health().errors.begin()->first;
}

}  // namespace
}  // namespace gpuledger::identity

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  gpuledger::identity::ServerProcess process;
  gpuledger::identity::servers = &process;
  return RUN_ALL_TESTS();
}
