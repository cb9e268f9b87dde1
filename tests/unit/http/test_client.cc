// SPDX-License-Identifier: Apache-2.0
#include "unit/http/test_client.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace gpuledger::http {
namespace {

constexpr timeval kPatience{60, 0};

X509* parse_certificate(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

}  // namespace

TestClient::TestClient(const std::string& address, std::optional<ClientTls> tls, const std::string& from) {
  connected_ = connect_socket(address, from) && (!tls || start_tls(*tls));
}

TestClient::~TestClient() {
  if (ssl_ != nullptr) SSL_free(ssl_);
  if (context_ != nullptr) SSL_CTX_free(context_);
  if (fd_ >= 0) ::close(fd_);
}

bool TestClient::connect_socket(const std::string& address, const std::string& from) {
  sockaddr_storage storage{};
  socklen_t size = 0;
  if (address.starts_with("unix:")) {
    auto& where = reinterpret_cast<sockaddr_un&>(storage);
    where.sun_family = AF_UNIX;
    std::strncpy(where.sun_path, address.c_str() + 5, sizeof where.sun_path - 1);
    size = sizeof where;
  } else {
    const auto colon = address.rfind(':');
    std::string host = address.substr(0, colon);
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found) != 0) return false;
    std::memcpy(&storage, found->ai_addr, found->ai_addrlen);
    size = found->ai_addrlen;
    ::freeaddrinfo(found);
  }
  fd_ = ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (!from.empty()) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    if (::inet_pton(AF_INET, from.c_str(), &own.sin_addr) != 1 ||
        ::bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own) != 0)
      return false;
  }
  return ::connect(fd_, reinterpret_cast<sockaddr*>(&storage), size) == 0;
}

bool TestClient::start_tls(const ClientTls& tls) {
  context_ = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_security_level(context_, 0);
  SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
  if (tls.max_version != 0) SSL_CTX_set_max_proto_version(context_, tls.max_version);
  if (!tls.ca.empty()) {
    X509* ca = parse_certificate(tls.ca);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), ca);
    X509_free(ca);
    SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
  }
  if (!tls.cert.empty()) {
    X509* certificate = parse_certificate(tls.cert);
    BIO* bio = BIO_new_mem_buf(tls.key.data(), static_cast<int>(tls.key.size()));
    EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context_, certificate);
    SSL_CTX_use_PrivateKey(context_, key);
    EVP_PKEY_free(key);
    BIO_free(bio);
    X509_free(certificate);
  }
  ssl_ = SSL_new(context_);
  SSL_set_fd(ssl_, fd_);
  const bool good = SSL_connect(ssl_) == 1;
  ERR_clear_error();
  return good;
}

bool TestClient::send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const long now = ssl_ != nullptr ? SSL_write(ssl_, bytes.data() + sent, static_cast<int>(bytes.size() - sent))
                                     : ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

long TestClient::receive(char* to, size_t size) {
  if (ssl_ == nullptr) return ::recv(fd_, to, size, 0);
  const int got = SSL_read(ssl_, to, static_cast<int>(size));
  ERR_clear_error();
  return got;
}

bool TestClient::fill() {
  char chunk[16384];
  const long got = receive(chunk, sizeof chunk);
  if (got > 0) pending_.append(chunk, static_cast<size_t>(got));
  return got > 0;
}

ClientResponse TestClient::read(bool head) {
  size_t end = 0;
  while ((end = pending_.find("\r\n\r\n")) == std::string::npos)
    if (!fill()) return {};
  ClientResponse response;
  const std::string block = pending_.substr(0, end + 2);
  pending_.erase(0, end + 4);
  size_t line_end = block.find("\r\n");
  if (line_end < 12) return {};
  response.version = block.substr(0, 8);
  const int status = std::atoi(block.c_str() + 9);
  for (size_t at = line_end + 2; at < block.size(); at = line_end + 2) {
    line_end = block.find("\r\n", at);
    const size_t colon = block.find(':', at);
    std::string name = block.substr(at, colon - at);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    response.headers[name] = block.substr(colon + 2, line_end - colon - 2);
  }
  const size_t length = head ? 0 : std::stoul("0" + response.headers["content-length"]);
  while (pending_.size() < length)
    if (!fill()) return {};
  response.body = pending_.substr(0, length);
  pending_.erase(0, length);
  response.status = status;
  return response;
}

bool TestClient::gather(size_t bytes) {
  while (pending_.size() < bytes)
    if (!fill()) return false;
  return true;
}

ClientResponse TestClient::get(const std::string& path, const std::string& headers) {
  if (!connected_ || !send("GET " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n")) return {};
  return read();
}

bool TestClient::has_bytes() const {
  pollfd ready{fd_, POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1;
}

bool TestClient::closed(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready{fd_, POLLIN, 0};
    const bool readable = ::poll(&ready, 1, std::max(0, static_cast<int>(left.count()))) == 1;
    if (readable && !fill()) return true;
    if (!readable && left.count() <= 0) return false;
  }
}

std::string TestClient::server_certificate() const {
  X509* certificate = ssl_ == nullptr ? nullptr : SSL_get1_peer_certificate(ssl_);
  if (certificate == nullptr) return {};
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  std::string pem(text, static_cast<size_t>(size));
  BIO_free(bio);
  X509_free(certificate);
  return pem;
}

ClientResponse fetch(const std::string& address, const std::string& path, const std::string& headers,
                     std::optional<ClientTls> tls) {
  return TestClient(address, std::move(tls)).get(path, headers);
}

}  // namespace gpuledger::http
