// SPDX-License-Identifier: Apache-2.0
#include "http/protection.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace gpuledger::http {
namespace {

// The kinds, in words.
std::set<std::string> protections(const WebConfig& config) {
  std::set<std::string> kinds;
  const auto add_if = [&](bool given, const std::string& kind) {
    if (given) kinds.insert(kind);
  };
  if (config.tls) {
    const TlsSettings& tls = *config.tls;
    kinds.insert("TLS");
    add_if(requires_certificate(tls.client_auth), "required client certificates");
    add_if(verifies_certificate(tls.client_auth), "verified client certificates");
    add_if(!tls.client_allowed_sans.empty(), "client_allowed_sans");
    add_if(tls.lowest_version() >= TlsVersion::kTls12, "TLS 1.2 at least");
    add_if(tls.lowest_version() >= TlsVersion::kTls13, "TLS 1.3 at least");
    add_if(!tls.cipher_suites.empty() || tls.only_tls13_suites, "cipher_suites");
    add_if(!tls.curves.empty(), "curve_preferences");
  }
  add_if(!config.users.empty(), "basic_auth_users");
  add_if(config.rate_limit.interval.count() > 0, "rate_limit");
  for (const auto& header : config.headers) kinds.insert("header " + header.first);
  return kinds;
}

}  // namespace

Status check_keeps_protection(const WebConfig& before, const WebConfig& after) {
  const auto had = protections(before), has = protections(after);
  std::vector<std::string> lost;
  std::set_difference(had.begin(), had.end(), has.begin(), has.end(), std::back_inserter(lost));
  if (lost.empty()) return ok_status();
  return Error{Code::kMalformed,
               fmt::format("it would take protection away ({}); if that is meant, restart", fmt::join(lost, ", "))};
}

}  // namespace gpuledger::http
