// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/pod_resources.h"

#include <messages/pod_resources.pb.h>

#include <algorithm>

#include "identity/device_id.h"
#include "identity/pod_json.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kMostGrants = 20'000;
// All clients of a node share the kubelet's rate limit: a refusal now and then is no failure.
constexpr int kLimitedBeforeDown = 4;

}  // namespace

PodResources::PodResources(Options options)
    : options_(std::move(options)),
      client_(options_.socket, options_.largest_answer, options_.connect_within),
      backoff_({.longest = options_.period}),
      thread_([this](const std::stop_token& stop) { return look(stop); }, *options_.timer) {
  health_.needs_thread(thread_.started());
}

std::shared_ptr<const GrantView> PodResources::view() const {
  const MutexLock lock(mutex_);
  return view_;
}

bool PodResources::is_gpu(const std::string& resource) const {
  return is_gpu_resource(resource) ||
         std::ranges::find(options_.more_resources, resource) != options_.more_resources.end();
}

task::PollThread::Next PodResources::look(const std::stop_token& stop) {
  if (client_.refresh()) only_v1alpha1_ = no_allocatable_ = false;
  auto view = std::make_shared<GrantView>();
  const GrpcOutcome outcome = read_grants(view->grants, stop);
  if (stop.stop_requested()) return {};
  if (!outcome.ok()) return failed(outcome);
  limited_in_a_row_ = 0;
  read_allocatable(stop);
  view->allocatable = allocatable_;
  health_.works();
  const MutexLock lock(mutex_);
  view_ = std::move(view);
  return {options_.period};
}

GrpcOutcome PodResources::read_grants(std::vector<DeviceGrant>& grants, const std::stop_token& stop) {
  proto::pod_resources::PodGrants pod;
  const auto add = [&](const proto::pod_resources::ContainerGrants& container, const std::string& resource,
                       const std::string& id) {
    if (grants.size() >= kMostGrants) return;
    grants.push_back({bounded_name(pod.namespace_()), bounded_name(pod.name()), bounded_name(container.name()),
                      bounded_name(resource), bounded_id(id)});
  };
  const auto each = [&] {
    for (const auto& container : pod.containers()) {
      for (const auto& devices : container.devices()) {
        if (!is_gpu(devices.resource_name())) continue;
        for (const auto& id : devices.device_ids()) add(container, devices.resource_name(), id);
      }
      for (const auto& dynamic : container.dynamic_resources()) {
        for (const auto& claim : dynamic.claim_resources()) {
          if (is_gpu_dra_driver(claim.driver_name())) add(container, claim.driver_name(), claim.device_name());
        }
      }
    }
  };
  GrpcOutcome outcome;
  if (!only_v1alpha1_) {
    outcome = client_.list("/v1.PodResourcesLister/List", pod, each, options_.deadline, stop);
    only_v1alpha1_ = outcome.code == "unimplemented";
  }
  if (only_v1alpha1_) {
    outcome = client_.list("/v1alpha1.PodResourcesLister/List", pod, each, options_.deadline, stop);
    if (!outcome.ok()) only_v1alpha1_ = false;
  }
  return outcome;
}

void PodResources::read_allocatable(const std::stop_token& stop) {
  if (only_v1alpha1_ || no_allocatable_) return;
  std::vector<std::string> found;
  proto::pod_resources::Devices devices;
  const auto each = [&] {
    if (!is_gpu(devices.resource_name())) return;
    for (const auto& id : devices.device_ids()) {
      if (found.size() < kMostGrants) found.push_back(bounded_id(id));
    }
  };
  const auto outcome =
      client_.list("/v1.PodResourcesLister/GetAllocatableResources", devices, each, options_.deadline, stop);
  if (outcome.ok()) {
    allocatable_ = std::move(found);
  } else if (outcome.code == "unimplemented" || outcome.code == "unknown") {
    // Kubelets before 1.21 do not have it; if it is switched off, they return an unspecific error.
    no_allocatable_ = true;
    allocatable_.clear();
  } else if (!stop.stop_requested()) {
    health_.counts(outcome.code);
  }
}

task::PollThread::Next PodResources::failed(const GrpcOutcome& outcome) {
  const bool limited = outcome.code == "rate_limited";
  limited_in_a_row_ = limited ? limited_in_a_row_ + 1 : 0;
  std::string reason = failure_reason(outcome, options_.socket);
  if (limited) reason = "this node's programs exceed the kubelet's rate limit: " + outcome.message;
  if (outcome.code == "unimplemented") {
    reason = options_.socket + " has no pod-resources service: is it the kubelet's?";
  }
  if (limited && limited_in_a_row_ < kLimitedBeforeDown && view()) {
    health_.counts(outcome.code);
  } else {
    health_.fails(outcome.code, std::move(reason));
  }
  return {backoff_.next(options_.timer->now()), false};
}

}  // namespace gpuledger::identity
