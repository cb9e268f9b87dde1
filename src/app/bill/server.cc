// SPDX-License-Identifier: Apache-2.0
#include "app/bill/server.h"

#include <cctype>

#include "base/quote.h"
#include "identity/sources/service_account.h"
#include "net/backoff.h"
#include "net/credentials.h"
#include "net/http_client.h"
#include "net/tls_client.h"

namespace gpuledger::app {
namespace {

constexpr int kTries = 4;

// A failure, and whether the same question may be answered a little later.
struct Failure {
  Error error;
  bool may_pass = false;
};

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += static_cast<char>(c);
    } else {
      out += {'%', kHex[c >> 4], kHex[c & 15]};
    }
  }
  return out;
}

// The last ones keep VictoriaMetrics and Thanos from leaving out a storage that does not answer, and VictoriaMetrics
// from answering for 30 seconds earlier; others ignore them.
std::string target_of(const BillServer& server, const std::string& query, std::chrono::sys_seconds at) {
  return server.url.http.target + "/api/v1/query?query=" + percent_encoded(query) +
         "&time=" + std::to_string(at.time_since_epoch().count()) +
         "&deny_partial_response=1&partial_response=false&nocache=1" + (server.deduplicate ? "" : "&dedup=false");
}

Result<std::string> authorization(const BillServer& server) {
  auto header = net::authorization({server.url.user_password, server.password_file, server.token_file});
  if (header.ok()) return header;
  const char* const flag = server.token_file.empty() ? "--prometheus-password-file: " : "--prometheus-token-file: ";
  return Error{header.error().code, flag + header.error().message};
}

net::Peer peer_of(const BillServer& server) {
  const ExporterUrl& url = server.url;
  net::Peer peer{url.unix_path, url.http.host, url.http.port, std::nullopt};
  if (url.http.tls) {
    peer.tls = net::TlsTrust{server.ca_file.empty() ? net::system_authorities() : server.ca_file, false};
  }
  return peer;
}

bool is_too_large(const std::string& message) {
  return message.find("an answer of more than ") != message.npos;
}

std::string explain(const std::string& message) {
  if (message == "TLS: wrong version number") return "it does not speak TLS; write http: in --prometheus-url";
  if (message.starts_with("its certificate is refused")) {
    return message.substr(0, message.find(';')) + "; --prometheus-ca-file=FILE names its CA or the certificate itself";
  }
  if (message.starts_with("CA file")) return "--prometheus-ca-file: " + message;
  if (is_too_large(message)) return message + "; bill parts of the fleet one by one with --match";
  return message + "; is a Prometheus server there?";
}

constexpr const char* kInBetween = "; is a login page or a proxy in between?";

// What a browser would show, and no query API has.
bool is_page(std::string_view body) {
  const size_t begin = body.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  return begin != body.npos && body[begin] == '<';
}

Failure refusal(const net::HttpReply& reply) {
  const std::string words = error_in_answer(reply.body);
  const std::string said = "answers " + std::to_string(reply.status) + (words.empty() ? "" : ": " + words);
  if (reply.status >= 300 && reply.status < 400) return {{Code::kUnavailable, said + kInBetween}};
  switch (reply.status) {
    case 401:
    case 403:
      return {{Code::kPermission, said + "; --prometheus-token-file, or USER:PASSWORD@ before the host in the variable "
                                         "GPU_LEDGER_PROMETHEUS_URL"}};
    case 404:
      return {{Code::kUnavailable,
               said + "; write what stands before /api/v1/query, as http://HOST:8481/select/0/prometheus for "
                      "VictoriaMetrics' cluster or http://HOST/prometheus for Mimir"}};
    // Of what the query is about nothing is wrong; it has too many series or samples for the limits of the server.
    case 422: return {{Code::kNotSupported, said}};
    default: break;
  }
  return {{Code::kUnavailable, said}, reply.status == 429 || reply.status >= 500};
}

Result<std::vector<BillSeries>> ask_once(const BillServer& server, const std::string& target, Failure& failure) {
  const auto fail = [&](Failure why) {
    failure = std::move(why);
    return failure.error;
  };
  const auto header = authorization(server);
  if (!header.ok()) return fail({{Code::kPermission, header.error().message}});
  net::HttpRequest request;
  request.target = target;
  request.headers = {{"Accept", "application/json"}};
  request.headers.insert(request.headers.end(), server.headers.begin(), server.headers.end());
  if (!header->empty()) request.headers.emplace_back("Authorization", *header);
  request.accept_gzip = true;
  request.connect_within = std::min<net::HttpRequest::Duration>(request.connect_within, server.answer_within);
  request.head_within = request.longest_silence = request.whole_within = server.answer_within;
  request.largest_body = server.largest_answer;
  const auto reply = net::HttpClient(peer_of(server), identity::user_agent(), *server.given_up).get(request);
  if (!reply.ok()) {
    // Not found is what a server says of a span. A name or a socket that is not there is an outage.
    Code code = reply.error().code == Code::kNotFound ? Code::kUnavailable : reply.error().code;
    if (is_too_large(reply.error().message)) code = Code::kNotSupported;
    return fail({{code, explain(reply.error().message)}, code == Code::kTimeout || code == Code::kUnavailable});
  }
  if (reply->status != 200) return fail(refusal(*reply));
  if (is_page(reply->body))
    return fail({{Code::kMalformed, std::string("answers with a page, not with JSON") + kInBetween}});
  auto answer = parse_answer(reply->body);
  if (!answer.ok()) return fail({answer.error(), answer.error().code == Code::kUnavailable});
  return answer;
}

}  // namespace

BillAsk ask_server(BillServer server) {
  return [server = std::move(server)](const std::string& query,
                                      std::chrono::sys_seconds at) -> Result<std::vector<BillSeries>> {
    const std::string target = target_of(server, query, at);
    net::Backoff backoff({server.first_pause, std::chrono::seconds(10)});
    for (int tries = 1;; ++tries) {
      Failure failure;
      auto answer = ask_once(server, target, failure);
      if (answer.ok()) return answer;
      if (server.given_up->raised()) return Error{Code::kTimeout, server.url.text + ": nobody waits for the answer"};
      if (!failure.may_pass || tries == kTries) {
        const std::string often = tries > 1 ? " (tried " + std::to_string(tries) + " times)" : "";
        return Error{failure.error.code, server.url.text + ": " + failure.error.message + often};
      }
      (void)server.given_up->wait_for(backoff.next(std::chrono::steady_clock::now()));
    }
  };
}

}  // namespace gpuledger::app
