// SPDX-License-Identifier: Apache-2.0
#include "http/host_rule.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace gpuledger::http {
namespace {

// Lower case, without the final dot of a full name.
std::string normal(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (out.ends_with('.')) out.pop_back();
  return out;
}

bool is_address(const std::string& host) {
  in6_addr room{};
  return ::inet_pton(AF_INET, host.c_str(), &room) == 1 || ::inet_pton(AF_INET6, host.c_str(), &room) == 1;
}

}  // namespace

std::string_view without_port(std::string_view header) {
  if (!header.starts_with('[')) return header.substr(0, header.find(':'));
  const auto end = header.find(']');
  return end == std::string_view::npos ? std::string_view() : header.substr(1, end - 1);
}

bool is_browsers_header(std::string_view name) {
  const std::string small = normal(name);
  // Sec-Fetch-* come only over TLS and from localhost; over plain HTTP Accept-Language marks a browser.
  return small == "accept-language" || small == "origin" || small == "referer" || small.starts_with("sec-");
}

HostRule::HostRule(std::vector<std::string> allowed, std::string own) : allowed_(std::move(allowed)) {
  if (!own.empty()) allowed_.push_back(std::move(own));
  for (std::string& name : allowed_) {
    any_ = any_ || name == "*";
    name = normal(name);
  }
}

bool HostRule::allows(std::string_view header) const {
  const std::string host = normal(without_port(header));
  if (any_ || host.find('.') == std::string::npos || is_address(host)) return true;
  for (const std::string_view known : {".localhost", ".svc", ".cluster.local"})
    if (host.ends_with(known)) return true;
  return std::find(allowed_.begin(), allowed_.end(), host) != allowed_.end();
}

std::string read_host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace gpuledger::http
