// SPDX-License-Identifier: Apache-2.0
#include "identity/pod_view.h"

#include <gtest/gtest.h>

#include "identity/pod_json.h"
#include "identity/pod_store.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;

constexpr const char* kList = R"({"kind":"PodList","metadata":{"resourceVersion":"77"},"items":[
  {"metadata":{"name":"train-0","namespace":"ml","uid":"u-1","labels":{"team":"red","secret":"x"}},
   "status":{"containerStatuses":[{"name":"pytorch","containerID":"containerd://abc",
                                   "lastState":{"terminated":{"containerID":"containerd://older"}}},{"name":"new"}],
             "initContainerStatuses":[{"name":"setup","containerID":"containerd://def"}]}},
  {"metadata":{"name":"static","namespace":"kube-system","uid":"u-2",
               "annotations":{"kubernetes.io/config.hash":"0123456789abcdef0123456789abcdef"}},"status":{"phase":"Succeeded"}},
  {"metadata":{"name":"no-uid"}}, 7]})";

std::shared_ptr<const Pod> pod(std::string name, std::string uid, std::string container_id = {}) {
  Pod made;
  made.name_space = "ml";
  made.name = std::move(name);
  made.uid = std::move(uid);
  if (!container_id.empty()) made.containers.push_back({std::move(container_id), "main"});
  return std::make_shared<const Pod>(std::move(made));
}

TEST(PodJson, PodsContainersAndStaticPods) {
  auto list = parse_pod_list(kList, {"team"});
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->resource_version, "77");
  ASSERT_EQ(list->pods.size(), 2u);
  std::vector<std::shared_ptr<const Pod>> pods;
  for (Pod& one : list->pods) pods.push_back(std::make_shared<const Pod>(std::move(one)));
  const PodView view(std::move(pods));
  EXPECT_EQ(view.by_container_id("abc").container->name, "pytorch");
  EXPECT_EQ(view.by_container_id("abc").pod->name, "train-0");
  EXPECT_EQ(view.by_container_id("older").container->name, "pytorch");
  EXPECT_EQ(view.by_container_id("def").container->name, "setup");
  EXPECT_EQ(view.by_container_id("").pod, nullptr);
  EXPECT_EQ(view.by_uid("u-1")->name_space, "ml");
  EXPECT_EQ(view.by_uid("u-1")->labels, (std::map<std::string, std::string>{{"team", "red"}}));
  EXPECT_FALSE(view.by_uid("u-1")->finished);
  EXPECT_EQ(view.by_uid("0123456789abcdef0123456789abcdef")->name, "static");
  EXPECT_TRUE(view.by_uid("0123456789abcdef0123456789abcdef")->finished);
  EXPECT_EQ(view.by_name("ml", "train-0")->uid, "u-1");
  EXPECT_EQ(view.by_name("other", "train-0"), nullptr);
}

TEST(PodJson, WhatContainersAskFor) {
  const auto list = parse_pod_list(R"({"items":[{"metadata":{"name":"a","uid":"u"},"spec":{
      "initContainers":[{"name":"setup","resources":{"limits":{"nvidia.com/gpu":1}}}],
      "containers":[{"name":"main","resources":{"limits":{"cpu":"4","nvidia.com/gpu":"2","x.com/y":"many"}}},
                    {"name":"main","resources":{"limits":{"nvidia.com/gpu":"3"}}},
                    {"name":"none","resources":{"limits":7}}, 7]}}]})",
                                   {});
  ASSERT_TRUE(list.ok());
  const std::vector<GpuRequest> expected = {{"setup", "nvidia.com/gpu", 1}, {"main", "nvidia.com/gpu", 2}};
  EXPECT_EQ(list->pods.at(0).requests, expected);
}

TEST(PodJson, RefusesWhatIsNoList) {
  for (const char* text : {"", "{", "[]", "7", R"({"items":{}})", R"({"kind":"Status"})"}) {
    EXPECT_FALSE(parse_pod_list(text, {}).ok()) << text;
  }
  EXPECT_TRUE(parse_pod_list(R"({"items":null})", {}).ok());
}

TEST(PodJson, DeepNestingIsCutOff) {
  const std::string deep = R"({"items":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  const auto list = parse_pod_list(deep, {});
  EXPECT_TRUE(!list.ok() || list->pods.empty());
}

TEST(PodView, AHashInAnAnnotationTakesNoOtherPodsProcesses) {
  const auto claims = [](std::string name, std::string uid) {
    Pod one = *pod(std::move(name), std::move(uid));
    one.manifest_hash = std::string(32, 'a');
    return std::make_shared<const Pod>(std::move(one));
  };
  const std::string hash(32, 'a');
  EXPECT_EQ(PodView({claims("static", "u-1"), claims("static", "u-2")}).by_uid(hash)->uid, "u-2") << "made anew";
  EXPECT_EQ(PodView({claims("static", "u-1"), claims("thief", "u-2")}).by_uid(hash), nullptr);
  EXPECT_EQ(PodView({claims("thief", "u-2"), claims("static", hash)}).by_uid(hash)->name, "static") << "its own uid";
}

TEST(PodStore, DeletedPodsStayForFiveMinutes) {
  PodStore store;
  EXPECT_EQ(store.view(), nullptr);
  const PodStore::Time start{};
  store.put(*pod("train", "u-1", "abc"));
  store.publish(start);
  const auto first = store.view();
  store.remove("u-1", start + 1s);
  store.publish(start + 2s);
  ASSERT_NE(store.view()->by_uid("u-1"), nullptr);
  EXPECT_TRUE(store.view()->by_uid("u-1")->finished) << "it holds no GPU any more";
  store.publish(start + 301s + 1ms);
  EXPECT_EQ(store.view()->by_uid("u-1"), nullptr);
  EXPECT_NE(first->by_container_id("abc").pod, nullptr) << "a view never changes";
}

TEST(PodStore, APodMadeAnewUnderAnOldNameIsTheOneMeant) {
  PodStore store;
  const PodStore::Time start{};
  for (int i = 0; i < 50; ++i) store.put(*pod("train", "old-" + std::to_string(i)));
  store.publish(start);
  store.replace_all({*pod("train", "new")}, start + 1s);
  store.publish(start + 1s);
  EXPECT_EQ(store.view()->pods().size(), 51u);
  EXPECT_EQ(store.view()->by_name("ml", "train")->uid, "new");
}

TEST(PodStore, IsBounded) {
  PodStore store;
  for (size_t i = 0; i < PodStore::kMostPods; ++i) ASSERT_TRUE(store.put(*pod("p", std::to_string(i))));
  EXPECT_FALSE(store.put(*pod("p", "one-more")));
  EXPECT_TRUE(store.put(*pod("p", "0"))) << "those that are in may change";
  EXPECT_EQ(store.replace_all({*pod("p", "two-more"), *pod("p", "1")}, {}), 1u);
}

}  // namespace
}  // namespace gpuledger::identity
