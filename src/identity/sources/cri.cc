// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/cri.h"

#include <messages/cri.pb.h>

#include <filesystem>

#include "identity/sources/cri_list.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLargestAnswer = 16 << 20;  // what kubelets allow
}  // namespace

CriPods::CriPods(Options options)
    : options_(std::move(options)),
      backoff_({.longest = options_.period}),
      thread_([this](const std::stop_token& stop) { return look(stop); }, *options_.timer) {
  health_.needs_thread(thread_.started());
}

// A socket alone is not enough: beside docker, containerd's often has no CRI. So a failure selects the next socket.
void CriPods::choose_socket() {
  std::string chosen = options_.socket;
  const auto& usual = options_.usual_sockets;
  for (size_t i = 0; i < usual.size() && chosen.empty(); ++i) {
    const size_t candidate = (next_socket_ + i) % usual.size();
    std::error_code ignored;
    if (!std::filesystem::exists(usual[candidate], ignored)) continue;
    chosen = usual[candidate];
    next_socket_ = candidate + 1;
  }
  if (chosen.empty()) {
    client_.reset();
  } else {
    client_ = std::make_unique<GrpcClient>(chosen, kLargestAnswer);
  }
}

task::PollThread::Next CriPods::look(const std::stop_token& stop) {
  if (!client_) choose_socket();
  std::vector<Pod> pods;
  const GrpcOutcome outcome = client_ ? read_pods(pods, stop) : GrpcOutcome{"no_socket", {}};
  if (stop.stop_requested()) return {};
  const auto now = options_.timer->now();
  if (!outcome.ok()) {
    std::string reason =
        "no container runtime's socket is in one of the usual places: mount its folder or give its path";
    if (client_) reason = failure_reason(outcome, client_->socket());
    if (client_ && outcome.code == "unimplemented") {
      reason = client_->socket() + " does not support CRI runtime.v1: give the path of a socket that does";
    }
    health_.fails(outcome.code, std::move(reason));
    client_.reset();
    return {backoff_.next(now), false};
  }
  const size_t left_out = store_.replace_all(std::move(pods), now);
  for (size_t i = 0; i < left_out; ++i) health_.counts("too_many_pods");
  store_.publish(now);
  health_.works();
  return {options_.period};
}

GrpcOutcome CriPods::read_pods(std::vector<Pod>& pods, const std::stop_token& stop) {
  client_->refresh();
  CriList list(options_.labels);
  proto::cri::Sandbox sandbox;
  proto::cri::Container container;
  const std::string service = "/runtime.v1.RuntimeService/";
  auto outcome = client_->list(
      service + "ListPodSandbox", sandbox, [&] { list.add(sandbox); }, options_.deadline, stop);
  if (outcome.ok())
    outcome = client_->list(
        service + "ListContainers", container, [&] { list.add(container); }, options_.deadline, stop);
  for (uint64_t i = 0; i < list.malformed(); ++i) health_.counts("malformed");
  for (uint64_t i = 0; i < list.left_out(); ++i) health_.counts("too_many_pods");
  pods = list.take();
  return outcome;
}

}  // namespace gpuledger::identity
