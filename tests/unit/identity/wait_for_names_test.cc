// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>

#include "identity/auto_pods.h"
#include "identity/resolver.h"
#include "support/proc_tree.h"

namespace gpuledger::identity {
namespace {

TEST(WaitForNames, NobodyIsWaitedForWhereNoSourceCanBeTried) {
  const testing::ProcTree tree;
  NodeDirectory directory;
  const auto none = []() -> std::unique_ptr<PodSource> { return nullptr; };
  directory.pods = std::make_unique<AutoPods>(
      std::vector<PodChoice>{{"pods-api", [] { return "no socket"; }, none}, {"apiserver", [] { return "no"; }, none}});
  const Resolver resolver(ProcReader(tree.root()), std::move(directory));
  const auto begin = std::chrono::steady_clock::now();
  resolver.wait_for_names(std::chrono::seconds(20));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(WaitForNames, WaitsForASourceThatMayAnswer) {
  const testing::ProcTree tree;
  class Silent final : public PodSource {
   public:
    std::shared_ptr<const PodView> view() const override { return nullptr; }
    SourceHealth health() const override {
      return {.source = "silent", .up = false, .reason = {}, .errors = {}, .undecided = true};
    }
  };
  NodeDirectory directory;
  directory.pods = std::make_unique<Silent>();
  const Resolver resolver(ProcReader(tree.root()), std::move(directory));
  const auto begin = std::chrono::steady_clock::now();
  resolver.wait_for_names(std::chrono::milliseconds(100));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace gpuledger::identity
