// SPDX-License-Identifier: Apache-2.0
#include "app/top/exporter.h"

#include <cerrno>
#include <cstring>

#include "identity/sources/service_account.h"
#include "net/credentials.h"
#include "net/http_client.h"
#include "net/tls_client.h"

namespace gpuledger::app::top {
namespace {

constexpr uint64_t kLargestSnapshot = 64 << 20;  // about 60000 processes
constexpr const char* kIsItThere = "is gpu-ledger serving there?";

// The flag with the same address under another scheme.
std::string url_with(std::string_view scheme, const Exporter& exporter) {
  const std::string& text = exporter.url.text;
  return "--url=" + std::string(scheme) + text.substr(text.find("//"));
}

bool may_need_tls(const Exporter& exporter) {
  return !exporter.url.http.tls && exporter.url.unix_path.empty();
}

std::string explain_certificate(const std::string& refused) {
  if (refused.find("mismatch") != refused.npos) return refused + "; write a name or address that is in the certificate";
  if (refused.find("expired") != refused.npos) return refused + "; renew it";
  return refused + "; --url-ca-file=FILE names its CA or the certificate itself";
}

// No answer at all: why, and what to do.
std::string explain(const Exporter& exporter, const std::string& message) {
  if (message == "TLS: wrong version number") return "it does not speak TLS; write " + url_with("http:", exporter);
  if (message.starts_with("its certificate is refused"))
    return explain_certificate(message.substr(0, message.find(';')));
  if (constexpr std::string_view kAbout = "CA file"; message.starts_with(kAbout)) {
    const size_t name = message.find_first_not_of(": ", kAbout.size());
    return "--url-ca-file: " + message.substr(name) +
           (exporter.ca_file.empty() ? "; give its CA or the certificate itself" : "");
  }
  if (message.starts_with("connection cut") && may_need_tls(exporter))
    return message + "; if it uses TLS, write " + url_with("https:", exporter);
  return message + "; " + kIsItThere;
}

bool nobody_listens(const Error& error) {
  for (const int number : {ECONNREFUSED, ENOENT}) {
    if (error.message == std::string("connect: ") + std::strerror(number)) return true;
  }
  return false;
}

Error status_error(const Exporter& exporter, unsigned status) {
  switch (status) {
    case 400:
      if (!may_need_tls(exporter)) break;
      return {Code::kMalformed, "answers 400; if it uses TLS, write " + url_with("https:", exporter)};
    case 401:
      if (!exporter.url.user_password.empty()) return {Code::kPermission, "refuses this user and password"};
      return {Code::kPermission,
              "needs a password: write USER:PASSWORD@ before the host, best in the variable GPU_LEDGER_URL"};
    case 404: return {Code::kMalformed, "answers 404: no gpu-ledger there; write its address, http://NODE:9400"};
    case 503: return {Code::kUnavailable, "has no books yet (503); try again soon"};
    default: break;
  }
  return {Code::kMalformed, "answers " + std::to_string(status) + "; " + kIsItThere};
}

net::Peer peer_of(const Exporter& exporter) {
  const ExporterUrl& url = exporter.url;
  net::Peer peer{url.unix_path, url.http.host, url.http.port, std::nullopt};
  if (url.http.tls) {
    peer.tls = net::TlsTrust{exporter.ca_file.empty() ? net::system_authorities() : exporter.ca_file, false};
  }
  return peer;
}

Result<Books> ask(const Exporter& exporter, const std::stop_token& stop) {
  net::HttpRequest request;
  request.target = exporter.url.http.target;
  request.headers = {{"Accept", "application/json"}};
  if (!exporter.url.user_password.empty()) {
    request.headers.emplace_back("Authorization", net::basic_auth(exporter.url.user_password));
  }
  request.accept_gzip = true;
  request.connect_within = request.head_within = request.longest_silence = request.whole_within =
      exporter.answer_within;
  request.largest_body = kLargestSnapshot;
  const net::Interrupt interrupt(stop);
  const auto reply = net::HttpClient(peer_of(exporter), identity::user_agent(), interrupt).get(request);
  if (!reply) {
    const Error& error = reply.error();
    const Code other = error.code == Code::kNotFound ? Code::kUnavailable : error.code;
    return Error{nobody_listens(error) ? Code::kNotFound : other, explain(exporter, error.message)};
  }
  if (reply->status != 200) return status_error(exporter, reply->status);
  auto books = parse_books(reply->body);
  if (!books) return Error{books.error().code, "answers, but with " + books.error().message + "; " + kIsItThere};
  return books;
}

}  // namespace

Result<Books> read_exporter(const Exporter& exporter, const std::stop_token& stop) {
  return ask(exporter, stop).about(exporter.url.text);
}

}  // namespace gpuledger::app::top
