// SPDX-License-Identifier: Apache-2.0
#include <openssl/ssl.h>

#include "unit/http/bcrypt_hash.h"
#include "unit/http/certificates.h"
#include "unit/http/server_fixture.h"

namespace gpuledger::http {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ServerTls : public ServerTest {
 protected:
  ServerTls() {
    write_identity(server_identity_);
    options_.web_config_file = directory_ / "web.yml";
  }

  void write_identity(const Identity& identity) {
    directory_.write("server.crt", identity.cert);
    directory_.write("server.key", identity.key);
  }
  void write_config(const std::string& more = "") {
    directory_.write("web.yml", "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n" + more);
  }
  int status(const ClientTls& tls) { return fetch(address(), "/metrics", "", tls).status; }
  std::string complaint() {
    auto server = Server::start(options_, cell_, clock_);
    return server ? std::string() : server.error().message;
  }

  const Identity authority_ = make_authority("test authority");
  const Identity other_authority_ = make_authority("another authority");
  const Identity server_identity_ = make_certificate("server", authority_, "IP:127.0.0.1");
  const Identity client_ =
      make_certificate("client", authority_, "DNS:prometheus.example,IP:10.0.0.1,email:a@b.example,URI:spiffe://x/y");
  const Identity stranger_ = make_certificate("stranger", other_authority_, "DNS:prometheus.example");
  const ClientTls anybody_{authority_.cert, "", "", 0};
};

TEST_F(ServerTls, ServesOverTls) {
  write_config();
  start();
  TestClient client(address(), anybody_);
  ASSERT_TRUE(client.connected());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get("/metrics").body, cell_.load()->text.get());
  EXPECT_EQ(client.get("/healthz", "Connection: close\r\n").status, 200);
  EXPECT_TRUE(client.closed());
  EXPECT_FALSE(TestClient(address(), ClientTls{other_authority_.cert, "", "", 0}).connected());
  EXPECT_EQ(status({authority_.cert, client_.cert, client_.key, 0}), 200) << "not asked for, so not sent";
}

TEST_F(ServerTls, ServesLargeSnapshotsOverTls) {
  auto snapshot = std::make_shared<Snapshot>(*sample_snapshot(clock_.now().steady));
  snapshot->text = LazyText(std::string(4 << 20, 'x'));
  cell_.store(snapshot);
  write_config();
  start_empty();
  TestClient client(address(), anybody_);
  EXPECT_TRUE(client.get("/metrics").body == snapshot->text.get());
  EXPECT_EQ(client.get("/metrics", "X-Long: " + std::string(20'000, 'x') + "\r\n").status, 431);
}

TEST_F(ServerTls, TellsPlainHttpWhatIsWrong) {
  write_config();
  start();
  const auto response = [&] {
    TestClient client(address());
    client.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    return client.read();
  }();
  EXPECT_EQ(response.status, 400);
}

TEST_F(ServerTls, SilentHandshakeIsCutOff) {
  options_.limits.header_timeout = milliseconds(150);
  write_config();
  start();
  TestClient silent(address());
  EXPECT_TRUE(silent.closed());
}

TEST_F(ServerTls, SilentHandshakeHoldsNobodyUp) {
  write_config();
  start();
  TestClient silent(address());
  EXPECT_EQ(status(anybody_), 200);
  EXPECT_FALSE(silent.has_bytes()) << "it is still there";
}

TEST_F(ServerTls, KeepsToTheVersions) {
  write_config();
  start();
  EXPECT_EQ(status({"", "", "", TLS1_2_VERSION}), 200);
  EXPECT_EQ(status({"", "", "", TLS1_1_VERSION}), 0);
  write_config("  min_version: TLS13\n");
  start();
  EXPECT_EQ(status({"", "", "", TLS1_3_VERSION}), 200);
  EXPECT_EQ(status({"", "", "", TLS1_2_VERSION}), 0);
  write_config("  min_version: TLS10\n  max_version: TLS12\n");
  start();
  EXPECT_EQ(status({"", "", "", TLS1_1_VERSION}), 200);
  EXPECT_EQ(status({"", "", "", TLS1_2_VERSION}), 200);
  write_config("  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n  curve_preferences: [CurveP256]\n");
  start();
  EXPECT_EQ(status({"", "", "", TLS1_2_VERSION}), 200);
  write_config("  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n");  // for an EC key: nothing fits
  start();
  EXPECT_EQ(status({"", "", "", TLS1_2_VERSION}), 0);
  EXPECT_EQ(status({"", "", "", TLS1_3_VERSION}), 200);
}

TEST_F(ServerTls, ClientCertificates) {
  directory_.write("ca.crt", authority_.cert);
  struct Case {
    const char* policy;
    bool ca;
    int none, known, stranger;
  };
  for (const Case& each :
       {Case{"NoClientCert", false, 200, 200, 200}, Case{"RequestClientCert", false, 200, 200, 200},
        Case{"RequireAnyClientCert", false, 0, 200, 200}, Case{"VerifyClientCertIfGiven", true, 200, 200, 0},
        Case{"RequireAndVerifyClientCert", true, 0, 200, 0}}) {
    write_config(std::string("  client_auth_type: ") + each.policy + "\n" +
                 (each.ca ? "  client_ca_file: ca.crt\n" : ""));
    start();
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      EXPECT_EQ(status({"", "", "", version}), each.none) << each.policy;
      EXPECT_EQ(status({"", client_.cert, client_.key, version}), each.known) << each.policy;
      EXPECT_EQ(status({"", stranger_.cert, stranger_.key, version}), each.stranger) << each.policy;
    }
  }
}

TEST_F(ServerTls, AllowedNamesOfClients) {
  directory_.write("ca.crt", authority_.cert);
  const std::string verify = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n";
  const auto nameless = make_certificate("nameless", authority_);
  write_config();
  start();
  for (const char* name : {"prometheus.example", "10.0.0.1", "a@b.example", "spiffe://x/y"}) {
    write_config(verify + "  client_allowed_sans: [other.example, '" + name + "']\n");
    ASSERT_TRUE(server_->reload());
    EXPECT_EQ(status({"", client_.cert, client_.key, 0}), 200) << name;
    EXPECT_EQ(status({"", nameless.cert, nameless.key, 0}), 0) << name;
    EXPECT_EQ(status({"", stranger_.cert, stranger_.key, 0}), 0) << "the name is right, the authority is not";
  }
  write_config(verify + "  client_allowed_sans: [prometheus, client, '*.example']\n");
  ASSERT_TRUE(server_->reload());
  EXPECT_EQ(status({"", client_.cert, client_.key, 0}), 0) << "only whole names count, and not the common name";
}

TEST_F(ServerTls, NewCertificateIsServedToNewConnections) {
  write_config();
  start();
  TestClient kept(address(), anybody_);
  ASSERT_EQ(kept.get("/metrics").status, 200);
  const Identity renewed = make_certificate("renewed", authority_, "IP:127.0.0.1");
  write_identity(renewed);
  EXPECT_TRUE(eventually([&] { return TestClient(address(), anybody_).server_certificate() == renewed.cert; }));
  const auto last = kept.get("/metrics");
  EXPECT_EQ(last.status, 200) << "an old connection is served once more";
  EXPECT_EQ(last.headers.at("connection"), "close") << "and then asked to come again";
}

TEST_F(ServerTls, BrokenCertificateKeepsTheOldOne) {
  write_config();
  start();
  directory_.write("server.crt", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n");
  EXPECT_TRUE(eventually([&] { return !outcomes().empty(); }));
  EXPECT_THAT(outcomes()[0], AllOf(HasSubstr("cert_file"), HasSubstr("server.crt")));
  EXPECT_EQ(TestClient(address(), anybody_).server_certificate(), server_identity_.cert);
  const Status asked = server_->reload();
  ASSERT_FALSE(asked);
  EXPECT_THAT(asked.error().message, HasSubstr("server.crt"));
}

TEST_F(ServerTls, TlsWithPasswordsOnAUnixSocket) {
  options_.listen_addresses.push_back("unix:" + (directory_ / "tls.sock"));
  write_config("basic_auth_users:\n  alice: " + bcrypt_hash("secret") + "\n");
  start();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(fetch(address(i), "/metrics", "", anybody_).status, 401);
    EXPECT_EQ(fetch(address(i), "/metrics", "Authorization: Basic YWxpY2U6c2VjcmV0\r\n", anybody_).status, 200);
  }
}

TEST_F(ServerTls, InlinePemTexts) {
  const auto indented = [](const std::string& pem) {
    std::string out = "|\n    ";
    for (const char c : pem) out += c == '\n' ? std::string("\n    ") : std::string(1, c);
    return out + "\n";
  };
  directory_.write("web.yml", "tls_server_config:\n  cert: " + indented(server_identity_.cert) +
                                  "  key: " + indented(server_identity_.key));
  start();
  EXPECT_EQ(status(anybody_), 200);
}

TEST_F(ServerTls, SaysWhyItCannotStart) {
  write_config();
  directory_.write("server.key", client_.key);
  EXPECT_THAT(complaint(), AllOf(HasSubstr("web.yml"), HasSubstr("key_file"), HasSubstr("server.key")));
  directory_.write("server.key", "");
  EXPECT_THAT(complaint(), HasSubstr("key_file"));
  std::filesystem::remove(directory_ / "server.key");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("key_file"), HasSubstr("No such file")));
  write_identity(server_identity_);
  directory_.write("ca.crt", "nothing of use");
  write_config("  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("client_ca_file"), HasSubstr("ca.crt")));
}

}  // namespace
}  // namespace gpuledger::http
