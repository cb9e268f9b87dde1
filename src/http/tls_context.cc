// SPDX-License-Identifier: Apache-2.0
#include "http/tls_context.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>

#include "base/file.h"
#include "base/openssl_reason.h"
#include "http/watched_file.h"

namespace gpuledger::http {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

int version_number(TlsVersion version) {
  switch (version) {
    case TlsVersion::kTls10: return TLS1_VERSION;
    case TlsVersion::kTls11: return TLS1_1_VERSION;
    case TlsVersion::kTls12: return TLS1_2_VERSION;
    case TlsVersion::kTls13: return TLS1_3_VERSION;
  }
  return TLS1_2_VERSION;
}

// An encrypted key is an error; OpenSSL's default would prompt for it.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

// Reads one of the three PEM texts and uses it; `what` is its name, for messages.
Status use_pem(SSL_CTX* context, const PemSource& source, const char* what, bool (*use)(SSL_CTX*, BIO*)) {
  std::string text = source.text;
  if (!source.file.empty()) {
    GL_TRY(content, read_file(source.file, kLargestWatchedFile).about(what));
    text = std::move(content);
  }
  const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (bio && use(context, bio.get())) return ok_status();
  const std::string name = source.file.empty() ? "the inline text" : source.file;
  return Error{Code::kMalformed, fmt::format("{}: {}: {}", what, name, openssl_reason())};
}

bool use_certificate(SSL_CTX* context, BIO* bio) {
  const Certificate leaf(PEM_read_bio_X509(bio, nullptr, no_passphrase, nullptr));
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) return false;
  while (true) {
    const Certificate next(PEM_read_bio_X509(bio, nullptr, no_passphrase, nullptr));
    if (!next) break;
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return false;
  }
  ERR_clear_error();  // the end of the file is an error to the PEM reader
  return true;
}

bool use_key(SSL_CTX* context, BIO* bio) {
  const Key key(PEM_read_bio_PrivateKey(bio, nullptr, no_passphrase, nullptr));
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1;
}

bool use_client_ca(SSL_CTX* context, BIO* bio) {
  size_t count = 0;
  while (true) {
    const Certificate ca(PEM_read_bio_X509(bio, nullptr, no_passphrase, nullptr));
    if (!ca) break;
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca.get()) != 1) return false;
    if (SSL_CTX_add_client_CA(context, ca.get()) != 1) return false;
    ++count;
  }
  if (count > 0) ERR_clear_error();
  return count > 0;
}

std::vector<std::string> subject_alternative_names(X509* certificate) {
  std::vector<std::string> names;
  auto* list = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(list); ++i) {
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(list, i), &type));
    if (type != GEN_DNS && type != GEN_EMAIL && type != GEN_URI && type != GEN_IPADD) continue;
    const unsigned char* bytes = ASN1_STRING_get0_data(value);
    const int size = ASN1_STRING_length(value);
    if (type != GEN_IPADD) {
      names.emplace_back(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    } else if (char text[INET6_ADDRSTRLEN]; size == 4 || size == 16) {
      if (::inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text) != nullptr) names.emplace_back(text);
    }
  }
  GENERAL_NAMES_free(list);
  return names;
}

// Called for every certificate a client sends, in place of OpenSSL's own check.
int check_client(X509_STORE_CTX* store, void* argument) {
  const auto& settings = *static_cast<const TlsSettings*>(argument);
  if (verifies_certificate(settings.client_auth) && X509_verify_cert(store) != 1) return 0;
  if (settings.client_allowed_sans.empty()) return 1;
  const auto& allowed = settings.client_allowed_sans;
  for (const std::string& name : subject_alternative_names(X509_STORE_CTX_get0_cert(store)))
    if (std::find(allowed.begin(), allowed.end(), name) != allowed.end()) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

Status apply_policy(SSL_CTX* context, const TlsSettings& settings) {
  const TlsVersion lowest = settings.lowest_version();
  // Distributions forbid TLS 1.0 and 1.1 by the security level; an explicit setting allows them.
  if (lowest < TlsVersion::kTls12) SSL_CTX_set_security_level(context, 0);
  if (SSL_CTX_set_min_proto_version(context, version_number(lowest)) != 1 ||
      SSL_CTX_set_max_proto_version(context, version_number(settings.max_version)) != 1)
    return Error{Code::kMalformed, "min_version, max_version: " + openssl_reason()};
  if (!settings.cipher_suites.empty() &&
      SSL_CTX_set_cipher_list(context, fmt::format("{}", fmt::join(settings.cipher_suites, ":")).c_str()) != 1)
    return Error{Code::kMalformed, "cipher_suites: " + openssl_reason()};
  if (!settings.curves.empty() &&
      SSL_CTX_set1_groups_list(context, fmt::format("{}", fmt::join(settings.curves, ":")).c_str()) != 1)
    return Error{Code::kMalformed, "curve_preferences: " + openssl_reason()};
  if (settings.prefer_server_cipher_suites) SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  // No resumption: a client must pass the current check of certificates, not an earlier one.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  return ok_status();
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::read(const TlsSettings& settings, const std::string& path_of_config) {
  ERR_clear_error();
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return Error{Code::kInternal, "OpenSSL: " + openssl_reason()};
  std::shared_ptr<TlsContext> tls(new TlsContext(settings, context));
  const std::string config = "web config " + path_of_config;
  GL_TRY_STATUS(apply_policy(context, settings).about(config));
  GL_TRY_STATUS(use_pem(context, settings.cert, "cert_file", use_certificate).about(config));
  GL_TRY_STATUS(use_pem(context, settings.key, "key_file", use_key).about(config));
  if (settings.client_ca.given())
    GL_TRY_STATUS(use_pem(context, settings.client_ca, "client_ca_file", use_client_ca).about(config));
  if (settings.client_auth != ClientAuth::kNone) {
    const int required = requires_certificate(settings.client_auth) ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | required, nullptr);
    SSL_CTX_set_cert_verify_callback(context, check_client, const_cast<TlsSettings*>(&tls->settings_));
  }
  return tls;
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

}  // namespace gpuledger::http
