// SPDX-License-Identifier: Apache-2.0
#include "http/web_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "unit/http/bcrypt_hash.h"
#include "unit/http/certificates.h"
#include "unit/http/temporary_directory.h"

namespace gpuledger::http {
namespace {

TEST(WebSettings, ABrokenFileIsReportedOnce) {
  TemporaryDirectory directory;
  const std::string path = directory.write("web.yml", "rate_limit: {interval: 1h, burst: 3}\n");
  std::vector<std::string> outcomes;
  auto settings = WebSettings::open(
      path, [&](const Status& outcome) { outcomes.push_back(outcome.ok() ? "ok" : outcome.error().message); });
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const auto look = [&] {
    for (int i = 0; i < 5; ++i) (*settings)->reload_if_changed();
    return outcomes.size();
  };
  EXPECT_EQ(look(), 0u);
  directory.write("web.yml", "rate_limitz: {}\n");
  EXPECT_EQ(look(), 1u);
  EXPECT_THAT(outcomes.back(), testing::HasSubstr("\"rate_limitz\""));
  EXPECT_EQ((*settings)->current()->config.rate_limit.burst, 3) << "the earlier settings stay";
  directory.write("web.yml", "rate_limit: {interval: 1h, burst: 4}\n");
  EXPECT_EQ(look(), 2u);
  EXPECT_EQ((*settings)->current()->config.rate_limit.burst, 4);
}

// A web config as its lines, one for each thing that protects.
class WebProtection : public testing::Test {
 protected:
  using Lines = std::vector<std::pair<std::string, std::string>>;  // what it is, how it is written

  WebProtection() {
    const Identity authority = make_authority("authority");
    const Identity server = make_certificate("server", authority, "IP:127.0.0.1");
    directory_.write("ca.crt", authority.cert);
    directory_.write("server.crt", server.cert);
    directory_.write("server.key", server.key);
  }

  static std::string text_of(const Lines& lines) {
    std::string text;
    for (const auto& line : lines) text += line.second;
    return text;
  }
  Lines without(const std::string& what) const {
    Lines lines = all_;
    std::erase_if(lines, [&](const auto& line) { return line.first == what; });
    return lines;
  }
  Lines with(const std::string& what, const std::string& instead) const {
    Lines lines = all_;
    for (auto& line : lines)
      if (line.first == what) line.second = instead;
    return lines;
  }

  TemporaryDirectory directory_;
  const Lines all_ = {
      {"TLS", "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"},
      {"client_auth_type", "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"},
      {"client_allowed_sans", "  client_allowed_sans: [prometheus.example]\n"},
      {"min_version", "  min_version: TLS13\n"},
      {"cipher_suites", "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n"},
      {"curve_preferences", "  curve_preferences: [CurveP256]\n"},
      {"basic_auth_users", "basic_auth_users:\n  alice: " + bcrypt_hash("a") + "\n  bob: " + bcrypt_hash("b") + "\n"},
      {"rate_limit", "rate_limit: {interval: 1s, burst: 3}\n"},
      {"headers", "http_server_config:\n  headers:\n    X-Frame-Options: deny\n"},
      {"HSTS", "    Strict-Transport-Security: max-age=60\n"},
  };
};

TEST_F(WebProtection, AReloadTakesNoneAway) {
  const std::string path = directory_.write("web.yml", text_of(all_));
  const auto settings = WebSettings::open(path, nullptr);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const auto before = (*settings)->current();
  const auto ca = "  client_ca_file: ca.crt\n";
  const std::pair<std::string, std::string> cases[] = {
      {"", "empty"},
      {std::string(300, '\0'), "NUL"},
      {"basic_auth_users:\n", "basic_auth_users"},
      {"tls_server_config: {}\nbasic_auth_users: {}\n", "TLS, "},
      {"http_server_config: {http2: true}\n", "TLS, "},
      {text_of({all_[6], all_[7], all_[8], all_[9]}), "TLS, "},
      {text_of({all_[0], all_[7], all_[8], all_[9]}), "basic_auth_users, "},
      {text_of(without("min_version")), "(TLS 1.3 at least)"},
      {text_of(with("min_version", "  min_version: TLS11\n")), "(TLS 1.2 at least, TLS 1.3 at least)"},
      {text_of(without("cipher_suites")), "(cipher_suites)"},
      {text_of(without("curve_preferences")), "(curve_preferences)"},
      {text_of(without("client_allowed_sans")), "(client_allowed_sans)"},
      {text_of(with("client_auth_type", std::string("  client_auth_type: RequireAnyClientCert\n") + ca)),
       "(verified client certificates)"},
      {text_of(with("basic_auth_users", "basic_auth_users: {}\n")), "(basic_auth_users)"},
      {text_of(without("basic_auth_users")), "(basic_auth_users)"},
      {text_of(without("rate_limit")), "(rate_limit)"},
      {text_of(with("rate_limit", "rate_limit: {burst: 3}\n")), "(rate_limit)"},
      {text_of(without("HSTS")), "(header Strict-Transport-Security)"},
  };
  for (const auto& [text, loss] : cases) {
    directory_.write("web.yml", text);
    const Status outcome = (*settings)->reload();
    ASSERT_FALSE(outcome.ok()) << text;
    EXPECT_THAT(outcome.error().message, testing::HasSubstr(loss)) << text;
    EXPECT_EQ((*settings)->current(), before) << text;
  }
  // Names need a certificate, so that the type can only change together with them.
  for (const std::string type : {"NoClientCert", "RequestClientCert", "VerifyClientCertIfGiven"}) {
    Lines lines =
        with("client_auth_type", "  client_auth_type: " + type + "\n" + (type == "VerifyClientCertIfGiven" ? ca : ""));
    std::erase_if(lines, [](const auto& line) { return line.first == "client_allowed_sans"; });
    directory_.write("web.yml", text_of(lines));
    const Status outcome = (*settings)->reload();
    ASSERT_FALSE(outcome.ok()) << type;
    EXPECT_THAT(outcome.error().message, testing::HasSubstr("required client certificates"));
    EXPECT_EQ((*settings)->current(), before);
  }
}

TEST_F(WebProtection, AReloadChangesWhatItConsistsOf) {
  const std::string path = directory_.write("web.yml", text_of(all_));
  const auto settings = WebSettings::open(path, nullptr);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  for (const Lines& lines : {with("basic_auth_users", "basic_auth_users:\n  carol: " + bcrypt_hash("c") + "\n"),
                             with("client_allowed_sans", "  client_allowed_sans: [other.example, third.example]\n"),
                             with("rate_limit", "rate_limit: {interval: 1ms, burst: 100}\n"),
                             with("HSTS", "    Strict-Transport-Security: max-age=1\n"),
                             with("curve_preferences", "  curve_preferences: [X25519]\n")}) {
    directory_.write("web.yml", text_of(lines));
    const Status outcome = (*settings)->reload();
    EXPECT_TRUE(outcome.ok()) << outcome.error().message;
  }
}

TEST_F(WebProtection, CertificatesAreRenewedWhileTheFileIsRefused) {
  const std::string path = directory_.write("web.yml", text_of(all_));
  const auto settings = WebSettings::open(path, nullptr);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const auto before = (*settings)->current();
  directory_.write("web.yml", text_of(without("rate_limit")));
  EXPECT_FALSE((*settings)->reload().ok());
  EXPECT_EQ((*settings)->current(), before);
  const Identity renewed = make_certificate("server", make_authority("authority"), "IP:127.0.0.1,IP:127.0.0.2");
  directory_.write("server.crt", renewed.cert);
  directory_.write("server.key", renewed.key);
  (*settings)->reload_if_changed();
  const auto after = (*settings)->current();
  EXPECT_NE(after->tls, before->tls);
  EXPECT_EQ(after->config.rate_limit.burst, 3);
  EXPECT_EQ(after->config.users.size(), 2u);
  (*settings)->reload_if_changed();
  EXPECT_EQ((*settings)->current(), after);
}

TEST_F(WebProtection, IsTakenAwayByARestart) {
  const std::string path = directory_.write("web.yml", "rate_limit: {interval: 1s, burst: 3}\n");
  const auto settings = WebSettings::open(path, nullptr);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  directory_.write("web.yml", text_of(all_));
  ASSERT_TRUE((*settings)->reload().ok()) << "more protection at any time";
  directory_.write("web.yml", "rate_limit: {interval: 1s, burst: 3}\n");
  const Status outcome = (*settings)->reload();
  ASSERT_FALSE(outcome.ok()) << "what a reload brought counts too";
  EXPECT_THAT(outcome.error().message, testing::HasSubstr("restart"));
  EXPECT_TRUE(WebSettings::open(path, nullptr).ok());
}

TEST(WebSettings, AnEmptyFileEndsTheStart) {
  TemporaryDirectory directory;
  for (const std::string& text : {std::string(), std::string(300, '\0'), std::string("basic_auth_users:\n")}) {
    const std::string path = directory.write("web.yml", text);
    const auto settings = WebSettings::open(path, nullptr);
    ASSERT_FALSE(settings.ok());
    EXPECT_THAT(settings.error().message, testing::HasSubstr(path));
  }
}

}  // namespace
}  // namespace gpuledger::http
