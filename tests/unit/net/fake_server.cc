// SPDX-License-Identifier: Apache-2.0
#include "unit/net/fake_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>

namespace gpuledger::net {
namespace {

constexpr auto kStep = std::chrono::milliseconds(5);

ssl_ctx_st* make_context(const http::Identity& identity, int newest) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  BIO* bio = BIO_new_mem_buf(identity.cert.data(), static_cast<int>(identity.cert.size()));
  X509* certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO* key_bio = BIO_new_mem_buf(identity.key.data(), static_cast<int>(identity.key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  if (newest != 0) {
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, 0);
    SSL_CTX_set_max_proto_version(context, newest);
  }
  EVP_PKEY_free(key);
  X509_free(certificate);
  BIO_free(bio);
  BIO_free(key_bio);
  return context;
}

FakeServer::Request parse_head(const std::string& head) {
  FakeServer::Request request;
  const size_t from = head.find(' ') + 1;
  request.method = head.substr(0, from - 1);
  request.target = head.substr(from, head.find(' ', from) - from);
  size_t line = head.find("\r\n");
  while (line != std::string::npos && line + 2 < head.size()) {
    const size_t end = head.find("\r\n", line + 2);
    const std::string text = head.substr(line + 2, end - line - 2);
    const size_t colon = text.find(": ");
    if (colon == std::string::npos) break;
    std::string name = text.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = text.substr(colon + 2);
    line = end;
  }
  return request;
}

}  // namespace

bool FakeServer::Connection::send(const std::string& bytes) {
  if (bytes.empty()) return true;
  if (tls_ != nullptr) return SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size())) > 0;
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

bool FakeServer::Connection::wait_for_hangup(std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (!stopping_ && std::chrono::steady_clock::now() < end) {
    pollfd one{fd_, POLLRDHUP, 0};
    if (::poll(&one, 1, static_cast<int>(kStep.count())) > 0) return true;
  }
  return false;
}

std::string FakeServer::Connection::read_head() {
  std::string head;
  char byte = 0;
  while (head.size() < 65536 && !head.ends_with("\r\n\r\n")) {
    const ssize_t got = tls_ != nullptr ? SSL_read(tls_, &byte, 1) : ::recv(fd_, &byte, 1, 0);
    if (got <= 0) return "";
    head += byte;
  }
  return head;
}

std::string FakeServer::Connection::read_bytes(size_t count) {
  std::string bytes(count, '\0');
  size_t have = 0;
  while (have < count) {
    char* const to = bytes.data() + have;
    const ssize_t got =
        tls_ != nullptr ? SSL_read(tls_, to, static_cast<int>(count - have)) : ::recv(fd_, to, count - have, 0);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

std::unique_ptr<FakeServer> FakeServer::on_loopback(Handler handler, std::optional<http::Identity> tls,
                                                    int newest_tls) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&where), size), 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&where), &size);
  auto* context = tls ? make_context(*tls, newest_tls) : nullptr;
  std::unique_ptr<FakeServer> server(new FakeServer(fd, std::move(handler), context));
  server->port_ = ntohs(where.sin_port);
  return server;
}

std::unique_ptr<FakeServer> FakeServer::on_unix(const std::string& path, Handler handler) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, path.c_str(), path.size() + 1);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  return std::unique_ptr<FakeServer>(new FakeServer(fd, std::move(handler), nullptr));
}

FakeServer::FakeServer(int fd, Handler handler, ssl_ctx_st* context)
    : fd_(fd), handler_(std::move(handler)), context_(context) {
  ::listen(fd_, 16);
  thread_ = std::thread([this] { accept_all(); });
}

FakeServer::~FakeServer() {
  stopping_ = true;
  thread_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RD);  // a client may never say what it wants
  }
  for (std::thread& each : connections_) each.join();
  ::close(fd_);
  SSL_CTX_free(context_);
}

std::vector<FakeServer::Request> FakeServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FakeServer::accept_all() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);  // the threads of connections inherit it
  while (!stopping_) {
    pollfd one{fd_, POLLIN, 0};
    if (::poll(&one, 1, static_cast<int>(kStep.count())) <= 0) continue;
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    const timeval longest{60, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
    {
      const std::lock_guard lock(mutex_);
      open_.insert(fd);
    }
    connections_.emplace_back([this, fd] { serve(fd); });
  }
}

void FakeServer::serve(int fd) {
  SSL* tls = nullptr;
  if (context_ != nullptr) {
    tls = SSL_new(context_);
    SSL_set_fd(tls, fd);
  }
  if (tls == nullptr || SSL_accept(tls) == 1) {
    Connection connection(fd, tls, stopping_);
    const std::string head = connection.read_head();
    if (!head.empty()) {
      Request request = parse_head(head);
      if (const auto size = request.headers.find("content-length"); size != request.headers.end()) {
        request.body = connection.read_bytes(std::stoul(size->second));
      }
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      handler_(request, connection);
      if (tls != nullptr) SSL_shutdown(tls);
    }
  }
  SSL_free(tls);
  ::shutdown(fd, SHUT_WR);
  const std::lock_guard lock(mutex_);
  open_.erase(fd);
  ::close(fd);
}

std::string http_answer(int status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + std::to_string(status) +
         " Whatever\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}

std::string chunked_head(const std::string& headers) {
  return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + headers + "\r\n";
}

std::string chunk(const std::string& bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return size + bytes + "\r\n";
}

std::string gzipped(const std::string& plain) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, plain.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace gpuledger::net
