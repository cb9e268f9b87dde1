// SPDX-License-Identifier: Apache-2.0
#include "unit/http/certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>

namespace gpuledger::http {
namespace {

std::string text_of(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string copy(text, static_cast<size_t>(size));
  BIO_free(bio);
  return copy;
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Identity make(const std::string& name, const Identity* authority, const std::string& alternative_names) {
  static std::atomic<long> serial{1};
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  if (!alternative_names.empty()) add_extension(certificate, NID_subject_alt_name, alternative_names);
  if (authority == nullptr) {
    add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE");
    X509_set_issuer_name(certificate, subject);
    X509_sign(certificate, key, EVP_sha256());
  } else {
    BIO* ca_bio = BIO_new_mem_buf(authority->cert.data(), static_cast<int>(authority->cert.size()));
    X509* ca = PEM_read_bio_X509(ca_bio, nullptr, nullptr, nullptr);
    BIO* key_bio = BIO_new_mem_buf(authority->key.data(), static_cast<int>(authority->key.size()));
    EVP_PKEY* ca_key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
    X509_set_issuer_name(certificate, X509_get_subject_name(ca));
    X509_sign(certificate, ca_key, EVP_sha256());
    EVP_PKEY_free(ca_key);
    X509_free(ca);
    BIO_free(key_bio);
    BIO_free(ca_bio);
  }
  BIO* cert_out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(cert_out, certificate);
  BIO* key_out = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(key_out, key, nullptr, nullptr, 0, nullptr, nullptr);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return {text_of(cert_out), text_of(key_out)};
}

}  // namespace

Identity make_authority(const std::string& name) {
  return make(name, nullptr, "");
}

Identity make_certificate(const std::string& name, const Identity& authority, const std::string& alternative_names) {
  return make(name, &authority, alternative_names);
}

}  // namespace gpuledger::http
