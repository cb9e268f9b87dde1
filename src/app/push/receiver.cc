// SPDX-License-Identifier: Apache-2.0
#include "app/push/receiver.h"

#include <algorithm>
#include <array>

#include "base/quote.h"
#include "identity/sources/service_account.h"
#include "net/backoff.h"
#include "net/http_client.h"
#include "net/tls_client.h"

namespace gpuledger::app {
namespace {

constexpr size_t kShownOfAnswer = 200;

// They are about the address, the credentials or the load, not about the samples: those wait until it is fixed.
constexpr std::array<unsigned, 9> kNotAboutTheSamples = {401, 402, 403, 404, 405, 407, 408, 425, 429};

std::string first_line(std::string_view text) {
  return clean_text(text.substr(0, text.find_first_of("\r\n")), kShownOfAnswer);
}

const char* remedy_of(unsigned status) {
  switch (status) {
    case 401:
    case 403: return "; check user, password, token and tenant";
    case 404:
    case 405: return "; check the path, and that the receiver takes remote write (docs/push.md)";
    case 402:
    case 407: return "; check the account, and any proxy before it";
    case 413: return "; a snapshot is one request: let the receiver take larger ones, or lower --max-series";
    case 429: return "; raise its limits, or --push-interval";
    default: break;
  }
  if (status / 100 == 3) return "; write the address that it leads to in --push-url";
  return "; its log says why; the samples wait";
}

// No answer at all: why, and what to do.
std::string explain(const ReceiverOptions& receiver, std::string_view message) {
  const auto about = [&](std::string_view start) { return message.starts_with(start); };
  const auto rest = [&](std::string_view start) {
    return std::string(message.substr(message.find_first_not_of(": ", start.size())));
  };
  if (about("password")) return "--push-password-file: " + rest("password");
  if (about("token")) return "--push-bearer-token-file: " + rest("token");
  if (about("CA file"))
    return "--push-ca-file: " + rest("CA file") +
           (receiver.ca_file.empty() ? "; give its CA or the certificate itself" : "");
  if (message == "TLS: wrong version number") return "it does not speak TLS; write http: in --push-url";
  if (about("its certificate is refused")) {
    const std::string refused(message.substr(0, message.find(';')));
    if (refused.find("mismatch") != refused.npos)
      return refused + "; write a name or address that is in the certificate";
    if (refused.find("expired") != refused.npos) return refused + "; renew it";
    return refused + "; --push-ca-file=FILE names its CA or the certificate itself";
  }
  if (about("connection cut") && !receiver.url.tls)
    return std::string(message) + "; check whether it runs; if it uses TLS, write https: in --push-url";
  return std::string(message) + "; check address, path, firewall and whether it runs";
}

PushOutcome judge(const ReceiverOptions& receiver, const net::HttpReply& reply) {
  using Verdict = PushOutcome::Verdict;
  if (reply.status / 100 == 2) return {Verdict::kTaken, {}, {}, {}};
  PushOutcome outcome;
  outcome.code = "http_" + std::to_string(reply.status);
  outcome.reason = receiver.url.text + ": answers " + std::to_string(reply.status);
  if (const std::string said = first_line(reply.body); !said.empty()) outcome.reason += ": " + said;
  outcome.retry_after = net::parse_retry_after(reply.retry_after);
  const bool about_samples =
      reply.status / 100 == 4 &&
      std::find(kNotAboutTheSamples.begin(), kNotAboutTheSamples.end(), reply.status) == kNotAboutTheSamples.end();
  if (!about_samples || reply.status == 413) outcome.reason += remedy_of(reply.status);
  outcome.verdict = about_samples ? Verdict::kRefused : Verdict::kLater;
  return outcome;
}

}  // namespace

PushOutcome post_block(const ReceiverOptions& receiver, std::string_view body, const net::Interrupt& interrupt) {
  const auto later = [&](const Error& error) {
    return PushOutcome{PushOutcome::Verdict::kLater,
                       code_name(error.code),
                       receiver.url.text + ": " + explain(receiver, error.message),
                       {}};
  };
  net::Peer peer{"", receiver.url.host, receiver.url.port, std::nullopt};
  if (receiver.url.tls) {
    peer.tls = net::TlsTrust{receiver.ca_file.empty() ? net::system_authorities() : receiver.ca_file, false};
  }
  net::HttpRequest request;
  request.target = receiver.url.target;
  request.headers = {{"Content-Encoding", "snappy"},
                     {"Content-Type", "application/x-protobuf"},
                     {"X-Prometheus-Remote-Write-Version", "0.1.0"}};
  request.headers.insert(request.headers.end(), receiver.headers.begin(), receiver.headers.end());
  auto who = net::authorization(receiver.credentials);
  if (!who.ok()) return later(who.error());
  if (!who->empty()) request.headers.emplace_back("Authorization", *std::move(who));
  request.head_within = request.longest_silence = request.whole_within = receiver.answer_within;
  request.connect_within = std::min<Nanoseconds>(request.connect_within, receiver.answer_within);
  const auto reply = net::HttpClient(std::move(peer), identity::user_agent(), interrupt).post(request, body);
  return reply.ok() ? judge(receiver, *reply) : later(reply.error());
}

}  // namespace gpuledger::app
