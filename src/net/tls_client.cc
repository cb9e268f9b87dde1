// SPDX-License-Identifier: Apache-2.0
#include "net/tls_client.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/openssl_reason.h"
#include "net/wire.h"

namespace gpuledger::net {
namespace {

constexpr size_t kLargestCaFile = 1 << 20;

bool is_address(const std::string& host) {
  in6_addr any;
  return ::inet_pton(AF_INET, host.c_str(), &any) == 1 || ::inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

// Returns the number of certificates.
int add_authorities(SSL_CTX* context, const std::string& pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  int count = 0;
  while (X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr)) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1) ++count;
    X509_free(certificate);
  }
  BIO_free(bio);
  ERR_clear_error();  // the end of the file is an error to the PEM reader
  return count;
}

}  // namespace

void TlsContextFree::operator()(ssl_ctx_st* context) const {
  SSL_CTX_free(context);
}

std::string system_authorities() {
  constexpr std::array<const char*, 3> kPlaces = {"/etc/ssl/certs/ca-certificates.crt",
                                                  "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};
  std::error_code ignored;
  for (const char* place : kPlaces) {
    if (std::filesystem::exists(place, ignored)) return place;
  }
  return kPlaces.front();
}

Result<TlsClientContext> read_tls_context(const Peer& peer) {
  ERR_clear_error();
  TlsClientContext context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    return Error{Code::kInternal, "OpenSSL: " + openssl_reason()};
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  if (peer.tls->skip_verify) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
    return context;
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  GL_TRY(pem, read_file(peer.tls->ca_file, kLargestCaFile).about("CA file"));
  if (add_authorities(context.get(), pem) == 0)
    return Error{Code::kMalformed, "CA file " + peer.tls->ca_file + " holds no certificate"};
  // As in Go: any certificate in the file is trusted, also an intermediate CA or the server's own.
  X509_STORE_set_flags(SSL_CTX_get_cert_store(context.get()), X509_V_FLAG_PARTIAL_CHAIN);
  return context;
}

bool expect_peer(ssl_st* tls, const Peer& peer) {
  X509_VERIFY_PARAM* const rules = SSL_get0_param(tls);
  if (is_address(peer.host)) return X509_VERIFY_PARAM_set1_ip_asc(rules, peer.host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return SSL_set_tlsext_host_name(tls, peer.host.c_str()) == 1 &&
         X509_VERIFY_PARAM_set1_host(rules, peer.host.c_str(), peer.host.size()) == 1;
}

Error tls_error(ssl_st* tls, const Peer& peer) {
  const long verdict = peer.tls->skip_verify ? X509_V_OK : SSL_get_verify_result(tls);
  if (verdict == X509_V_OK) return {Code::kUnavailable, "TLS: " + openssl_reason()};
  ERR_clear_error();
  return {Code::kMalformed, std::string("its certificate is refused: ") + X509_verify_cert_error_string(verdict) +
                                "; check the CA file " + peer.tls->ca_file};
}

}  // namespace gpuledger::net
