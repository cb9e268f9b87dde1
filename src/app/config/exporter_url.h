// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/http_url.h"
#include "base/result.h"

namespace gpuledger::app {

// Where a running exporter answers.
struct ExporterUrl {
  std::string text;           // for messages; without the password
  std::string unix_path;      // empty: `http` says where
  HttpUrl http;               // its target is that of the JSON
  std::string user_password;  // "user:password"; empty: none
  bool none = false;          // no exporter at all
  friend bool operator==(const ExporterUrl&, const ExporterUrl&) = default;
};

// "http://node:9400", "https://user:password@node/prefix/", "unix:/run/gpu-ledger.sock", "none". No message shows a
// password.
Result<ExporterUrl> parse_exporter_url(std::string_view text);

// The same for a server that speaks Prometheus' API; the target is what stands before /api/v1/query, without a slash at
// its end.
Result<ExporterUrl> parse_prometheus_url(std::string_view text);

// Where an exporter with this --listen-address answers on the same machine. Empty text: it cannot be told.
ExporterUrl local_exporter(std::string_view listen_address);

}  // namespace gpuledger::app
