// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/pod_proto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "unit/identity/sources/pod_bytes.h"

namespace gpuledger::identity {
namespace {

PodBytes example() {
  return {.name = "train-0",
          .uid = "11111111-2222-3333-4444-555555555555",
          .containers = {{"pytorch", "containerd://abc"}, {"sidecar", "cri-o://def"}, {"not-yet", ""}},
          .last_id = "containerd://older",
          .labels = {{"team", "red"}, {"secret", "x"}},
          .annotations = {{"hami.io/vgpu-devices-allocated", "GPU-1,NVIDIA,1000,50:;"}}};
}

TEST(PodProto, WhatNamesNeed) {
  const auto pod = parse_pod_proto(example().bytes(), {"team", "absent"});
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->name_space, "ml");
  EXPECT_EQ(pod->name, "train-0");
  EXPECT_EQ(pod->uid, "11111111-2222-3333-4444-555555555555");
  EXPECT_FALSE(pod->finished);
  EXPECT_EQ(pod->labels, (std::map<std::string, std::string>{{"team", "red"}}));
  EXPECT_EQ(pod->hami_devices, "GPU-1,NVIDIA,1000,50:;");
  EXPECT_EQ(pod->manifest_hash, "");
  ASSERT_EQ(pod->containers.size(), 3u);
  EXPECT_EQ(pod->containers[0].id + "=" + pod->containers[0].name, "older=pytorch");
  EXPECT_EQ(pod->containers[1].id + "=" + pod->containers[1].name, "abc=pytorch");
  EXPECT_EQ(pod->containers[2].id + "=" + pod->containers[2].name, "def=sidecar");
}

TEST(PodProto, WhatItsContainersAskFor) {
  const auto limits = [](const std::string& resource, const std::string& count) {
    return wire_field(1, wire_field(1, resource) + wire_field(2, wire_field(1, count)));
  };
  const std::string container =
      wire_field(1, "main") + wire_field(8, limits("nvidia.com/gpu", "2") + limits("cpu", "4") +
                                                limits("vendor.com/x", "1500m") + limits("nvidia.com/mig-1g.5gb", "1"));
  const std::string bytes =
      wire_field(1, wire_field(1, "a") + wire_field(5, "u")) + wire_field(2, wire_field(2, container));
  const auto pod = parse_pod_proto(bytes, {});
  ASSERT_TRUE(pod);
  ASSERT_EQ(pod->requests.size(), 2u) << "extended resources in whole numbers";
  std::vector<GpuRequest> requests = pod->requests;
  std::sort(requests.begin(), requests.end());
  EXPECT_EQ(requests[0], (GpuRequest{"main", "nvidia.com/gpu", 2}));
  EXPECT_EQ(requests[1], (GpuRequest{"main", "nvidia.com/mig-1g.5gb", 1}));
}

TEST(PodProto, InitAndEphemeralContainers) {
  const auto status = [](const char* name, const char* id) { return wire_field(1, name) + wire_field(8, id); };
  const std::string bytes =
      wire_field(1, wire_field(1, "a") + wire_field(5, "u")) +
      wire_field(3, wire_field(10, status("setup", "docker://1")) + wire_field(13, status("debug", "docker://2")));
  const auto pod = parse_pod_proto(bytes, {});
  ASSERT_TRUE(pod);
  ASSERT_EQ(pod->containers.size(), 2u);
  EXPECT_EQ(pod->containers[0].name, "setup");
  EXPECT_EQ(pod->containers[1].name, "debug");
}

TEST(PodProto, StaticAndFinishedPods) {
  PodBytes pod = example();
  pod.annotations = {{"kubernetes.io/config.hash", "0123456789abcdef0123456789abcdef"}};
  EXPECT_EQ(parse_pod_proto(pod.bytes(), {})->manifest_hash, "0123456789abcdef0123456789abcdef");
  for (const auto& [phase, finished] : {std::pair("Pending", false), {"Succeeded", true}, {"Failed", true}}) {
    pod.phase = phase;
    EXPECT_EQ(parse_pod_proto(pod.bytes(), {})->finished, finished) << phase;
  }
}

TEST(PodProto, OnlyAHashIsTakenForOne) {
  for (const char* annotation : {"11111111-2222-3333-4444-555555555555", "0123456789ABCDEF0123456789ABCDEF", "0123"}) {
    PodBytes pod = example();
    pod.annotations = {{"kubernetes.io/config.hash", annotation}};
    EXPECT_EQ(parse_pod_proto(pod.bytes(), {})->manifest_hash, "") << annotation;
  }
}

// Two names that a page or a line of the metrics shows alike are one name.
TEST(PodProto, NamesAreCleanedButIdsAreNot) {
  const PodBytes pod{.name = "a\nb\xff\xfe",
                     .uid = "u",
                     .containers = {{"\x1b[31m", "containerd://1"}, {"c", "containerd://2\n"}},
                     .labels = {{"team", "\xc0\x80"}}};
  const auto parsed = parse_pod_proto(pod.bytes(), {"team"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->name, "ab\xef\xbf\xbd");
  EXPECT_EQ(parsed->labels.at("team"), "\xef\xbf\xbd");
  ASSERT_EQ(parsed->containers.size(), 1u) << "no id is made into another";
  EXPECT_EQ(parsed->containers[0].name, "[31m");
  for (const std::string& uid : {std::string("u\0", 2), std::string("u\n"), std::string("\xff"), std::string(254, 'u')})
    EXPECT_FALSE(parse_pod_proto(PodBytes{.name = "a", .uid = uid}.bytes(), {}));
}

TEST(PodProto, ContainersOfAPodAreBounded) {
  PodBytes pod = example();
  for (int i = 0; i < 2000; ++i) pod.containers.emplace_back("c", "containerd://" + std::to_string(i));
  EXPECT_EQ(parse_pod_proto(pod.bytes(), {})->containers.size(), 1000u);
}

TEST(PodProto, RefusesWhatIsNoPod) {
  EXPECT_FALSE(parse_pod_proto("", {}));
  EXPECT_FALSE(parse_pod_proto("\xff\xff\xff", {}));
  EXPECT_FALSE(parse_pod_proto(PodBytes{.name = "no-uid", .uid = ""}.bytes(), {}));
  EXPECT_FALSE(parse_pod_proto(PodBytes{.name = "", .uid = "no-name"}.bytes(), {}));
}

TEST(PodProto, LongNamesAreCut) {
  const PodBytes pod{.name = std::string(5000, 'n'), .uid = "u", .labels = {{"team", std::string(5000, 'v')}}};
  const auto parsed = parse_pod_proto(pod.bytes(), {"team"});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->name.size(), 253u);
  EXPECT_EQ(parsed->labels.at("team").size(), 253u);
}

// Cut and changed anywhere, it may say nothing or something else, but nothing worse. Sanitizers watch.
TEST(PodProto, AnyBytes) {
  const std::string good = example().bytes();
  for (size_t length = 0; length < good.size(); ++length) parse_pod_proto(good.substr(0, length), {"team"});
  std::minstd_rand random(1);
  size_t still_pods = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    still_pods += parse_pod_proto(bytes, {"team"}) ? 1 : 0;
  }
  EXPECT_GT(still_pods, 0u);
  EXPECT_LT(still_pods, 20'000u);
}

}  // namespace
}  // namespace gpuledger::identity
