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

// A client context that trusts only the peer's CA file.
Result<TlsClientContext> read_tls_context(const Peer& peer);
// Sets the expected peer of the connection: the certificate must have the peer's address or host name.
bool expect_peer(ssl_st* tls, const Peer& peer);
// Why the handshake or a later call failed; empties OpenSSL's queue.
Error tls_error(ssl_st* tls, const Peer& peer);
// The distribution's file of trusted CAs.
std::string system_authorities();

}  // namespace gpuledger::net
