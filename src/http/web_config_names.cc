// SPDX-License-Identifier: Apache-2.0
#include "http/web_config_names.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace gpuledger::http {
namespace {

template <typename Value, size_t N>
std::optional<Value> look_up(const std::pair<std::string_view, Value> (&table)[N], std::string_view name) {
  for (const auto& [key, value] : table)
    if (key == name) return value;
  return std::nullopt;
}

constexpr std::pair<std::string_view, ClientAuth> kClientAuth[] = {
    {"", ClientAuth::kNone},
    {"NoClientCert", ClientAuth::kNone},
    {"RequestClientCert", ClientAuth::kRequest},
    {"RequireAnyClientCert", ClientAuth::kRequireAny},
    {"RequireClientCert", ClientAuth::kRequireAny},  // exporter-toolkit's older name
    {"VerifyClientCertIfGiven", ClientAuth::kVerifyIfGiven},
    {"RequireAndVerifyClientCert", ClientAuth::kRequireAndVerify},
};

constexpr std::pair<std::string_view, TlsVersion> kTlsVersions[] = {
    {"TLS10", TlsVersion::kTls10},
    {"TLS11", TlsVersion::kTls11},
    {"TLS12", TlsVersion::kTls12},
    {"TLS13", TlsVersion::kTls13},
};

constexpr std::pair<std::string_view, std::string_view> kCipherSuites[] = {
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"},
};

constexpr std::pair<std::string_view, std::string_view> kCurves[] = {
    {"CurveP256", "P-256"},
    {"CurveP384", "P-384"},
    {"CurveP521", "P-521"},
    {"X25519", "X25519"},
};

constexpr std::string_view kHeaders[] = {"Content-Security-Policy", "X-Frame-Options", "X-Content-Type-Options",
                                         "X-XSS-Protection", "Strict-Transport-Security"};

}  // namespace

std::optional<ClientAuth> find_client_auth(std::string_view name) {
  return look_up(kClientAuth, name);
}

std::optional<TlsVersion> find_tls_version(std::string_view name) {
  return look_up(kTlsVersions, name);
}

std::optional<std::string> find_cipher_suite(std::string_view name) {
  const auto found = look_up(kCipherSuites, name);
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

bool is_tls13_suite(std::string_view name) {
  return name == "TLS_AES_128_GCM_SHA256" || name == "TLS_AES_256_GCM_SHA384" || name == "TLS_CHACHA20_POLY1305_SHA256";
}

std::optional<std::string> find_curve(std::string_view name) {
  const auto found = look_up(kCurves, name);
  return found ? std::optional<std::string>(*found) : std::nullopt;
}

bool is_settable_header(std::string_view name) {
  return std::find(std::begin(kHeaders), std::end(kHeaders), name) != std::end(kHeaders);
}

bool is_header_value(std::string_view name, std::string_view value) {
  // A line break could end the header and start another.
  if (std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; })) return false;
  if (value.empty()) return true;
  if (name == "X-Frame-Options") return value == "deny" || value == "sameorigin";
  if (name == "X-Content-Type-Options") return value == "nosniff";
  return true;
}

// "$2y$10$" and 53 characters of salt and hash.
std::optional<int> find_bcrypt_cost(std::string_view hash) {
  if (hash.size() != 60 || !hash.starts_with("$2") || std::string_view("aby").find(hash[2]) == std::string_view::npos)
    return std::nullopt;
  if (hash[3] != '$' || !is_digit(hash[4]) || !is_digit(hash[5]) || hash[6] != '$') return std::nullopt;
  const bool alphabet = std::all_of(hash.begin() + 7, hash.end(), [](char c) {
    return c == '.' || c == '/' || is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  });
  const int cost = (hash[4] - '0') * 10 + (hash[5] - '0');
  return alphabet && cost >= 4 && cost <= 31 ? std::optional<int>(cost) : std::nullopt;
}

std::optional<int> find_count(std::string_view text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || count < 0) return std::nullopt;
  return count;
}

}  // namespace gpuledger::http
