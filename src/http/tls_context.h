// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/web_config.h"

struct ssl_ctx_st;

namespace gpuledger::http {

// OpenSSL's server context from one web config. A connection keeps its first one and must hold this object until it
// ends: client certificates are checked against it.
class TlsContext {
 public:
  // Reads the certificate, key and CA files; path_of_config is for messages.
  static Result<std::shared_ptr<TlsContext>> read(const TlsSettings& settings, const std::string& path_of_config);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* native() const { return context_; }
  const TlsSettings& settings() const { return settings_; }

 private:
  TlsContext(TlsSettings settings, ssl_ctx_st* context) : settings_(std::move(settings)), context_(context) {}

  const TlsSettings settings_;
  ssl_ctx_st* context_;
};

}  // namespace gpuledger::http
