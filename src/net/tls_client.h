// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace gpuledger::net {

struct Peer;

struct TlsContextFree {
  void operator()(ssl_ctx_st* context) const;
};
using TlsClientContext = std::unique_ptr<ssl_ctx_st, TlsContextFree>;

// A client's context that trusts the peer's CA file and nothing else.
Result<TlsClientContext> read_tls_context(const Peer& peer);
// Says to the connection whom it must be talking to: the certificate has to name the peer's address or host name.
bool expect_peer(ssl_st* tls, const Peer& peer);
// Why the handshake or a later call failed; empties OpenSSL's queue.
Error tls_error(ssl_st* tls, const Peer& peer);
std::string openssl_reason();

}  // namespace gpuledger::net
