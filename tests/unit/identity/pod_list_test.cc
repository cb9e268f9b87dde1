#include "identity/pod_list.h"

#include <gtest/gtest.h>

namespace gpuledger::identity {
namespace {

constexpr const char* kList = R"({"kind":"PodList","items":[
  {"metadata":{"name":"train-0","namespace":"ml","uid":"u-1"},
   "status":{"containerStatuses":[{"name":"pytorch","containerID":"containerd://abc"},{"name":"new"}],
             "initContainerStatuses":[{"name":"setup","containerID":"containerd://def"}]}},
  {"metadata":{"name":"static","namespace":"kube-system","uid":"u-2",
               "annotations":{"kubernetes.io/config.hash":"hash-2"}}},
  {"metadata":{"name":"no-uid"}}, 7]})";

TEST(PodList, PodsContainersAndStaticPods) {
  const auto view = parse_pod_list(kList);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->by_container_id.at("abc").name, "pytorch");
  EXPECT_EQ(view->by_container_id.at("abc").pod.pod, "train-0");
  EXPECT_EQ(view->by_container_id.at("def").name, "setup");
  EXPECT_EQ(view->by_container_id.size(), 2u);
  EXPECT_EQ(view->by_uid.at("u-1").name_space, "ml");
  EXPECT_EQ(view->by_uid.at("hash-2").pod, "static");
  EXPECT_EQ(view->by_uid.size(), 3u);
}

TEST(PodList, RefusesWhatIsNoList) {
  EXPECT_FALSE(parse_pod_list("").ok());
  EXPECT_FALSE(parse_pod_list("{").ok());
  EXPECT_FALSE(parse_pod_list("[]").ok());
  EXPECT_FALSE(parse_pod_list(R"({"items":{}})").ok());
}

TEST(PodListFile, AMissingFileIsAnEmptyView) {
  PodListFile file("/nonexistent/pods.json");
  ASSERT_NE(file.view(), nullptr);
  EXPECT_TRUE(file.view()->by_uid.empty());
}

}  // namespace
}  // namespace gpuledger::identity
