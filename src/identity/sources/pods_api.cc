// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/pods_api.h"

#include <messages/pods_api.pb.h>

#include <algorithm>
#include <map>

#include "identity/sources/pod_proto.h"

namespace gpuledger::identity {
namespace {

using namespace std::chrono_literals;
using Got = GrpcClient::Stream::Got;

constexpr auto kForgetEvery = 60s;  // deleted pods are dropped even if no event comes

enum EventType { kAdded = 1, kModified = 2, kDeleted = 3, kFirstListComplete = 4 };

}  // namespace

// One stream, from its first list to its end.
class PodsApi::Watch {
 public:
  Watch(PodsApi& owner, GrpcClient& client, std::stop_token stop)
      : owner_(owner), stream_(client.open("/v1alpha1.Pods/WatchPods", std::move(stop))) {}

  GrpcOutcome run() {
    const auto list_due = now() + owner_.options_.first_list;
    std::string bytes;
    while (true) {
      const auto until = listed_ ? publish_due_ : list_due;
      const auto got = stream_->next(bytes, std::chrono::ceil<std::chrono::milliseconds>(until - now()));
      if (got == Got::kMessage) take(bytes);
      if (got == Got::kEnd) break;
      if (!listed_ && now() >= list_due) return {"deadline_exceeded", "the first list does not end"};
      if (listed_ && now() >= publish_due_) publish();
    }
    if (listed_) publish();
    return stream_->outcome();
  }

 private:
  void take(const std::string& bytes) {
    proto::pods_api::Event event;
    if (!event.ParseFromString(bytes)) return owner_.health_.counts("malformed");
    if (event.type() == kFirstListComplete) return complete();
    if (event.type() != kAdded && event.type() != kModified && event.type() != kDeleted) return;
    auto pod = parse_pod_proto(event.pod(), owner_.options_.labels);
    if (!pod) return owner_.health_.counts("malformed");
    if (!listed_) {
      collect(event.type(), std::move(*pod));
      return;
    }
    if (event.type() == kDeleted) {
      owner_.store_.remove(pod->uid, now());
    } else if (!owner_.store_.put(std::move(*pod))) {
      owner_.health_.counts("too_many_pods");
    }
    publish_due_ = std::min(publish_due_, now() + owner_.options_.publish_every);
  }

  // An incomplete list is not published: pods that have not arrived yet would look deleted.
  void collect(int type, Pod pod) {
    if (type == kDeleted) {
      first_list_.erase(pod.uid);
    } else if (first_list_.size() < PodStore::kMostPods || first_list_.contains(pod.uid)) {
      std::string uid = pod.uid;
      first_list_.insert_or_assign(std::move(uid), std::move(pod));
    } else {
      owner_.health_.counts("too_many_pods");
    }
  }

  void complete() {
    if (listed_) return;
    listed_ = true;
    std::vector<Pod> pods;
    for (auto& [uid, pod] : first_list_) pods.push_back(std::move(pod));
    first_list_.clear();
    const size_t left_out = owner_.store_.replace_all(std::move(pods), now());
    for (size_t i = 0; i < left_out; ++i) owner_.health_.counts("too_many_pods");
    publish();
    owner_.health_.works();
  }

  void publish() {
    owner_.store_.publish(now());
    publish_due_ = now() + kForgetEvery;
  }

  task::Timer::Time now() const { return owner_.options_.timer->now(); }

  PodsApi& owner_;
  const std::unique_ptr<GrpcClient::Stream> stream_;
  bool listed_ = false;
  std::map<std::string, Pod> first_list_;  // by uid
  task::Timer::Time publish_due_;
};

PodsApi::PodsApi(Options options) : options_(std::move(options)), backoff_(options_.pace) {
  health_.needs_thread(thread_.start([this](const std::stop_token& stop) { run(stop); }));
}

void PodsApi::run(const std::stop_token& stop) {
  GrpcClient client(options_.socket, options_.largest_message);
  do {
    const GrpcOutcome outcome = Watch(*this, client, stop).run();
    if (stop.stop_requested()) return;
    if (outcome.ok()) {
      health_.counts("stream_ended");  // kubelets do this to slow readers; a new stream follows
    } else {
      health_.fails(outcome.code, reason_of(outcome));
    }
  } while (options_.timer->sleep(stop, backoff_.next(options_.timer->now())));
}

std::string PodsApi::reason_of(const GrpcOutcome& outcome) const {
  if (outcome.code == "no_socket") {
    return options_.socket +
           " is not there: the kubelet must be 1.37 or newer (1.36 with the feature gate PodsAPI), and its folder "
           "mounted, not the socket";
  }
  if (outcome.code == "unimplemented") return options_.socket + " has no Pods service: is it the kubelet's?";
  if (outcome.code == "failed_precondition") return "the kubelet is still starting";
  return failure_reason(outcome, options_.socket);
}

}  // namespace gpuledger::identity
