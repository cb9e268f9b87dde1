// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "identity/auto_pods.h"
#include "identity/resolver.h"
#include "support/proc_tree.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;

// Says nothing, and may still answer until it was asked this often.
class SilentPods final : public PodSource {
 public:
  SilentPods(std::atomic<int>& asked, int undecided) : asked_(asked), undecided_(undecided) {}
  std::shared_ptr<const PodView> view() const override { return nullptr; }
  SourceHealth health() const override {
    return {.source = "silent", .up = false, .reason = {}, .errors = {}, .undecided = ++asked_ <= undecided_};
  }

 private:
  std::atomic<int>& asked_;
  const int undecided_;
};

TEST(WaitForNames, NobodyIsWaitedForWhereNoSourceCanBeTried) {
  const testing::ProcTree tree;
  NodeDirectory directory;
  const auto none = []() -> std::unique_ptr<PodSource> { return nullptr; };
  directory.pods = *AutoPods::start(
      std::vector<PodChoice>{{"pods-api", [] { return "no socket"; }, none}, {"apiserver", [] { return "no"; }, none}});
  const Resolver resolver(ProcReader(tree.root()), std::move(directory));
  resolver.wait_for_names(24h);  // and is back long before
}

TEST(WaitForNames, WaitsForASourceUntilItIsDecided) {
  const testing::ProcTree tree;
  std::atomic<int> asked = 0;
  NodeDirectory directory;
  directory.pods = std::make_unique<SilentPods>(asked, 3);
  const Resolver resolver(ProcReader(tree.root()), std::move(directory));
  resolver.wait_for_names(24h);
  EXPECT_EQ(asked, 4);
}

TEST(WaitForNames, WaitsNoLongerThanItsPatience) {
  const testing::ProcTree tree;
  std::atomic<int> asked = 0;
  NodeDirectory directory;
  directory.pods = std::make_unique<SilentPods>(asked, 1'000'000);
  const Resolver resolver(ProcReader(tree.root()), std::move(directory));
  const auto begin = std::chrono::steady_clock::now();
  resolver.wait_for_names(100ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 100ms);
  EXPECT_GT(asked, 1);
}

}  // namespace
}  // namespace gpuledger::identity
