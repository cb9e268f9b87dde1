// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "base/file.h"
#include "identity/resolver.h"
#include "resolver_batch.h"
#include "support/proc_tree.h"

// A resolver over a /proc of files and sources that answer what a test tells them.
namespace gpuledger::identity {

inline const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
inline const std::string kUid = "11112222-3333-4444-5555-666677778888";
inline const std::string kPodCgroup = "0::/kubepods/burstable/pod" + kUid + "/" + kId + "\n";

class FixedPods final : public PodSource {
 public:
  std::shared_ptr<const PodView> view() const override { return view_; }
  SourceHealth health() const override { return {.source = "fixed", .up = true, .reason = {}, .errors = {}}; }
  void name_pod() {
    Pod pod;
    pod.name_space = "ml";
    pod.name = "train-0";
    pod.uid = kUid;
    pod.containers = {{kId, "pytorch"}};
    view_ = std::make_shared<const PodView>(std::vector{std::make_shared<const Pod>(std::move(pod))});
  }

 private:
  std::shared_ptr<const PodView> view_;
};

class FixedGrants final : public AllocationSource {
 public:
  std::shared_ptr<const GrantView> view() const override { return view_; }
  SourceHealth health() const override { return {.source = "grants", .up = true, .reason = {}, .errors = {}}; }
  void grant(std::vector<DeviceGrant> grants) {
    view_ = std::make_shared<const GrantView>(GrantView{std::move(grants), {}});
  }

 private:
  std::shared_ptr<const GrantView> view_;
};

class FixedContainers final : public ContainerSource {
 public:
  std::string_view runtime() const override { return "docker"; }
  std::shared_ptr<const ContainerNames> view() const override { return view_; }
  SourceHealth health() const override {
    return {.source = "docker", .up = works, .reason = works ? "" : "no permission", .errors = {}};
  }
  bool works = true;
  void name(const std::string& id, const std::string& name) {
    view_ = std::make_shared<const ContainerNames>(ContainerNames{{id, name}});
  }
  std::string user() const override { return uid; }
  void look_again() override { ++asked; }
  int asked = 0;
  std::string uid = "0";

 private:
  std::shared_ptr<const ContainerNames> view_;
};

class ResolverTest : public ::testing::Test {
 protected:
  NodeDirectory directory() {
    NodeDirectory made;
    made.pods.reset(pods_);
    made.allocations.reset(grants_);
    made.containers.emplace_back(containers_);
    return made;
  }

  testing::ProcTree tree_;
  FixedPods* pods_ = new FixedPods;
  FixedGrants* grants_ = new FixedGrants;
  FixedContainers* containers_ = new FixedContainers;
  Resolver resolver_{ProcReader(tree_.root()), directory()};
};

}  // namespace gpuledger::identity
