// SPDX-License-Identifier: Apache-2.0
#include "http/web_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/web_config_names.h"

namespace gpuledger::http {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHash = "$2y$10$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";

TEST(ParseWebConfig, PlainHttpMustBeSaid) {
  const auto config = parse_web_config("tls_server_config: {}\nbasic_auth_users: {}\n", "/etc/web.yml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_FALSE(config->tls);
  EXPECT_THAT(config->users, IsEmpty());
}

TEST(ParseWebConfig, RefusesAFileThatIsEmptyOrCutOff) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "the file is empty"},
      {"# nothing\n", "the file is empty"},
      {"---\n", "the file is empty"},
      {"{}\n", "the file is empty"},
      {std::string(4096, '\0'), "NUL"},
      {"rate_limit: {interval: 1h, burst: 3}\n" + std::string(8, '\0'), "NUL"},
      {"basic_auth_users:\n", "line 1: \"basic_auth_users\" has no value in the file"},
      {"tls_server_config:\nbasic_auth_users: {}\n", "\"tls_server_config\" has no value"},
      {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: }\n", "\"client_auth_type\" has no value"},
      {"tls_server_config: {cert_file: a, key_file: b, client_allowed_sans: }\n", "\"client_allowed_sans\" has no"},
      {"rate_limit: {burst: 3, interval: }\n", "\"interval\" has no value"},
  };
  for (const auto& [text, complaint] : cases) {
    const auto config = parse_web_config(text, "/etc/web.yml");
    ASSERT_FALSE(config) << text;
    EXPECT_THAT(config.error().message, AllOf(HasSubstr("/etc/web.yml"), HasSubstr(complaint))) << text;
  }
}

TEST(ParseWebConfig, ReadsEverySetting) {
  const auto config = parse_web_config(std::string(R"(
tls_server_config:
  cert_file: server.crt
  key_file: /keys/server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: sub/ca.crt
  client_allowed_sans: [prometheus.example, 10.0.0.1]
  min_version: TLS11
  max_version: TLS12
  cipher_suites: [TLS_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]
  prefer_server_cipher_suites: false
  curve_preferences: [X25519, CurveP256]
http_server_config:
  http2: false
  headers:
    X-Frame-Options: deny
    Strict-Transport-Security: max-age=31536000
    X-XSS-Protection:
basic_auth_users:
  alice: )") + kHash + R"(
rate_limit:
  interval: 1m1.5s
  burst: 20
)",
                                       "/etc/ledger/web.yml");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_TRUE(config->tls);
  EXPECT_EQ(config->tls->cert.file, "/etc/ledger/server.crt");
  EXPECT_EQ(config->tls->key.file, "/keys/server.key");
  EXPECT_EQ(config->tls->client_ca.file, "/etc/ledger/sub/ca.crt");
  EXPECT_EQ(config->tls->client_auth, ClientAuth::kRequireAndVerify);
  EXPECT_THAT(config->tls->client_allowed_sans, ElementsAre("prometheus.example", "10.0.0.1"));
  EXPECT_EQ(config->tls->min_version, TlsVersion::kTls11);
  EXPECT_EQ(config->tls->max_version, TlsVersion::kTls12);
  EXPECT_THAT(config->tls->cipher_suites, ElementsAre("ECDHE-RSA-AES256-GCM-SHA384"));
  EXPECT_THAT(config->tls->curves, ElementsAre("X25519", "P-256"));
  EXPECT_FALSE(config->tls->prefer_server_cipher_suites);
  EXPECT_EQ(config->headers.size(), 2u);
  EXPECT_EQ(config->headers.at("X-Frame-Options"), "deny");
  EXPECT_EQ(config->users.at("alice"), kHash);
  EXPECT_EQ(config->rate_limit.interval, std::chrono::milliseconds(61500));
  EXPECT_EQ(config->rate_limit.burst, 20);
}

TEST(ParseWebConfig, HasTheToolkitsDefaults) {
  const auto config = parse_web_config("tls_server_config: {cert_file: a, key_file: b}", "web.yml");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->tls->cert.file, "a");
  EXPECT_EQ(config->tls->min_version, TlsVersion::kTls12);
  EXPECT_EQ(config->tls->max_version, TlsVersion::kTls13);
  EXPECT_TRUE(config->tls->prefer_server_cipher_suites);
  EXPECT_EQ(config->tls->client_auth, ClientAuth::kNone);
}

struct BadFile {
  const char* text;
  const char* complaint;
};

TEST(ParseWebConfig, RefusesWithFileAndKey) {
  const BadFile cases[] = {
      {"tls_config: {}", "unknown key \"tls_config\" in the file"},
      {"tls_server_config:\n  certfile: a\n", "line 2: unknown key \"certfile\" in tls_server_config"},
      {"http_server_config: {http3: true}", "unknown key \"http3\" in http_server_config"},
      {"http_server_config: {headers: {Server: x}}", "unknown key \"Server\" in headers"},
      {"http_server_config: {headers: {X-Frame-Options: maybe}}", "X-Frame-Options cannot be \"maybe\""},
      {"http_server_config: {headers: {Content-Security-Policy: \"a\\r\\nSet-Cookie: b\"}}", "Content-Security-Policy"},
      {"http_server_config: {http2: perhaps}", "http2 must be true or false"},
      {"rate_limit: {interval: fast}", "\"fast\" is not a duration"},
      {"rate_limit: {burst: -1}", "burst"},
      {"rate_limit: {bursts: 1}", "unknown key \"bursts\""},
      {"basic_auth_users: {alice: secret}", "user \"alice\": not a bcrypt hash"},
      {"basic_auth_users: {alice: $2y$31$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW}", "cost 31"},
      {"basic_auth_users: [alice]", "basic_auth_users must be a map"},
      {"basic_auth_users: {a: x, a: y}", "a"},
      {"rate_limit: {burst: 1, burst: 2}", "\"burst\" is given twice in rate_limit"},
      {"tls_server_config: {cert_file: a}", "needs key_file"},
      {"tls_server_config: {key_file: a}", "needs cert_file"},
      {"tls_server_config: {min_version: TLS12}", "needs cert_file"},
      {"tls_server_config: {cert_file: a, cert: b, key_file: c}", "not both"},
      {"tls_server_config: {cert_file: a, key_file: b, min_version: SSL3}", "min_version: \"SSL3\" is not known"},
      {"tls_server_config: {cert_file: a, key_file: b, min_version: TLS13, max_version: TLS12}", "above max_version"},
      {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: Sometimes}", "\"Sometimes\" is not known"},
      {"tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}", "without client_auth_type"},
      {"tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAndVerifyClientCert}",
       "needs client_ca_file"},
      {"tls_server_config: {cert_file: a, key_file: b, client_allowed_sans: [x]}", "client_allowed_sans needs"},
      {"tls_server_config: {cert_file: a, key_file: b, cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]}", "RC4"},
      {"tls_server_config: {cert_file: a, key_file: b, cipher_suites: x}", "must be a list"},
      {"tls_server_config: {cert_file: a, key_file: b, curve_preferences: [P-1]}", "\"P-1\""},
      {"tls_server_config: {cert_file: [a], key_file: b}", "cert_file must be a text"},
      {"tls_server_config: {cert_file: a", "line 1"},
      {"just text", "must be a map"},
      {"[1, 2]", "must be a map"},
  };
  for (const BadFile& each : cases) {
    const auto config = parse_web_config(each.text, "/etc/web.yml");
    ASSERT_FALSE(config) << each.text;
    EXPECT_EQ(config.error().code, Code::kMalformed);
    EXPECT_THAT(config.error().message, AllOf(HasSubstr("/etc/web.yml"), HasSubstr(each.complaint))) << each.text;
    EXPECT_EQ(config.error().message.find('\n'), std::string::npos);
  }
}

TEST(ParseWebConfig, NeverRepeatsASecret) {
  const auto config = parse_web_config("basic_auth_users: {alice: hunter2}", "web.yml");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message.find("hunter2"), std::string::npos);
}

TEST(WebConfigNames, ReadBcryptCosts) {
  EXPECT_EQ(find_bcrypt_cost(kHash), 10);
  EXPECT_FALSE(find_bcrypt_cost(""));
  EXPECT_FALSE(find_bcrypt_cost("$1$abc$def"));
  std::string odd = kHash;
  odd[20] = '!';
  EXPECT_FALSE(find_bcrypt_cost(odd));
  odd = kHash;
  odd[4] = '9';
  EXPECT_FALSE(find_bcrypt_cost(odd));
}

}  // namespace
}  // namespace gpuledger::http
