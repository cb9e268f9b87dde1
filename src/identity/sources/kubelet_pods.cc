// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/kubelet_pods.h"

#include <cstdlib>
#include <utility>

#include "identity/sources/pod_list_stream.h"
#include "net/credentials.h"
#include "net/http_client.h"

namespace gpuledger::identity {
namespace {

std::string without_brackets(std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') return host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

std::string KubeletOptions::default_host() {
  for (const char* name : {"NODE_IP", "HOST_IP"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "127.0.0.1";
}

KubeletPods::KubeletPods(KubeletOptions options)
    : options_(std::move(options)),
      peer_{"", without_brackets(options_.host), options_.port,
            net::TlsTrust{options_.account.ca_file, options_.skip_verify}},
      thread_([this](const std::stop_token& stop) { return look(stop); }, *options_.timer) {
  health_.needs_thread(thread_.started());
}

task::PollThread::Next KubeletPods::look(const std::stop_token& stop) {
  const auto failed = [&](const Error& error, const char* advice = "") {
    health_.fails(code_name(error.code), "kubelet " + peer_.text() + ": " + error.message + advice);
    return task::PollThread::Next{options_.period};
  };
  auto token = net::read_token(options_.account.token_file);
  if (!token.ok()) return failed(token.error(), "; mount the service account's token");
  net::HttpRequest request;
  request.target = "/pods";
  request.headers = {{"Authorization", "Bearer " + *token}, {"Accept", "application/json"}};
  request.accept_gzip = true;
  request.connect_within = request.head_within = request.longest_silence = request.whole_within =
      options_.answer_within;
  const net::Interrupt interrupt(stop);
  PodListStream list(options_.labels, "");
  Status fed = ok_status();
  auto reply = net::HttpClient(peer_, user_agent(), interrupt).get(request, [&](std::string_view bytes) {
    fed = list.feed(bytes);
    return fed.ok();
  });
  if (interrupt.raised()) return {options_.period};
  if (!reply.ok() && reply.error().code == Code::kMalformed && !options_.skip_verify)
    return failed(reply.error(), "; for a kubelet that signed its own certificate, set --kubelet-insecure");
  if (!reply.ok()) return failed(reply.error(), "; is --kubelet-address right, and may this program reach it?");
  if (reply->status != 200) return refused(reply->status);
  if (!fed.ok()) return failed(fed.error());
  auto pods = list.finish();
  if (!pods.ok()) return failed(pods.error());
  const auto now = options_.timer->now();
  if (store_.replace_all(std::move(pods->pods), now) + list.left_out() > 0) health_.counts("pods_left_out");
  store_.publish(now);
  health_.works();
  return {options_.period};
}

task::PollThread::Next KubeletPods::refused(unsigned status) {
  std::string reason = "kubelet " + peer_.text() + " answers " + std::to_string(status);
  if (status == 401) reason += ": it does not accept the token; is webhook authentication on? needs nodes/pods get";
  if (status == 403)
    reason += ": RBAC: needs nodes/pods get (kubelets before 1.33 know only nodes/proxy: use another --pod-source)";
  if (status >= 300 && status < 400) reason += ": redirects are not followed";
  health_.fails("http_" + std::to_string(status), std::move(reason));
  if (status == 401 || status == 403) return {options_.after_refusal, false};
  return {options_.period};
}

}  // namespace gpuledger::identity
