// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace gpuledger::http {

enum class TlsVersion { kTls10, kTls11, kTls12, kTls13 };

enum class ClientAuth { kNone, kRequest, kRequireAny, kVerifyIfGiven, kRequireAndVerify };

constexpr bool requires_certificate(ClientAuth type) {
  return type == ClientAuth::kRequireAny || type == ClientAuth::kRequireAndVerify;
}
constexpr bool verifies_certificate(ClientAuth type) {
  return type == ClientAuth::kVerifyIfGiven || type == ClientAuth::kRequireAndVerify;
}

// A PEM text in the web config itself or in its own file.
struct PemSource {
  std::string file;
  std::string text;
  bool given() const { return !file.empty() || !text.empty(); }
};

struct TlsSettings {
  PemSource cert;
  PemSource key;
  PemSource client_ca;
  ClientAuth client_auth = ClientAuth::kNone;
  std::vector<std::string> client_allowed_sans;
  TlsVersion min_version = TlsVersion::kTls12;
  TlsVersion max_version = TlsVersion::kTls13;
  std::vector<std::string> cipher_suites;  // OpenSSL's names; up to TLS 1.2
  bool only_tls13_suites = false;          // suites were given, all of them TLS 1.3's
  std::vector<std::string> curves;         // OpenSSL's names
  bool prefer_server_cipher_suites = true;

  TlsVersion lowest_version() const { return only_tls13_suites ? TlsVersion::kTls13 : min_version; }
};

struct RateLimit {
  Nanoseconds interval{0};  // 0: no limit
  int burst = 0;
};

// The file of --web-config-file, in the format of Prometheus' exporter-toolkit. Differences: a bcrypt cost above 18 is
// refused (one check would take a minute), and so are settings that look safe but are not (tls_server_config without a
// certificate, verifying clients without a CA) and a file that is empty or has a key without a value.
struct WebConfig {
  std::optional<TlsSettings> tls;
  std::map<std::string, std::string> headers;  // for every response
  std::map<std::string, std::string> users;    // name -> bcrypt hash; empty: no authentication
  RateLimit rate_limit;
};

// path is for messages and for relative paths.
Result<WebConfig> parse_web_config(std::string_view text, const std::string& path);

}  // namespace gpuledger::http
