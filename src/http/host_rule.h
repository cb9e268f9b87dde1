// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::http {

// Against DNS rebinding: a web page resolves its own name to our address, and its script may then read what we serve.
// The page's name is in the Host header, and no script can change that. Prometheus may use any name, so the rule
// applies only to browsers.

// Headers that browsers send with every request and scripts cannot remove; programs send none of them.
bool is_browsers_header(std::string_view name);

// Names that a browser may use. Always allowed: IP addresses, localhost, names without a dot (not valid on the
// internet), names of Kubernetes services (*.svc, *.cluster.local) and this machine's own.
class HostRule {
 public:
  // "*": any name. own: this machine's name.
  HostRule(std::vector<std::string> allowed, std::string own);
  // header: the value of Host, with or without a port.
  bool allows(std::string_view header) const;

 private:
  std::vector<std::string> allowed_;
  bool any_ = false;
};

// The name in a Host header, without the port.
std::string_view without_port(std::string_view header);

// gethostname(), or empty.
std::string read_host_name();

}  // namespace gpuledger::http
