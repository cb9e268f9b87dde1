// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::http {

// Against DNS rebinding: a page on the internet gives its own name our address, and its script may then read what we
// serve. The name it came by is in the Host header, and no script can change that. Prometheus comes by any name, so the
// rule counts for browsers alone.

// Headers that browsers send with every request and a script cannot take away; programs send none of them.
bool is_browsers_header(std::string_view name);

// Names under which a browser may come. Any IP address, localhost, names without a dot (nobody on the internet has
// one), names of Kubernetes services (*.svc, *.cluster.local) and this machine's own need not be among them.
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

// gethostname(), or nothing.
std::string read_host_name();

}  // namespace gpuledger::http
