// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

struct ssl_st;
struct ssl_ctx_st;

namespace gpuledger::http {

struct ClientResponse {
  int status = 0;  // 0: the connection ended before a whole response was there
  std::string version;
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;
};

struct ClientTls {
  std::string ca;    // PEM; empty: any server will do
  std::string cert;  // PEM; empty: none is sent
  std::string key;
  int max_version = 0;
};

// A blocking client that says exactly the bytes it is told to. It waits for a minute at most, which only ends what
// hangs.
class TestClient {
 public:
  // The address as Server::addresses() writes it. connected() is false where TLS or the connection failed.
  // from: the IPv4 address that it asks from; all of 127.0.0.0/8 is this machine's.
  explicit TestClient(const std::string& address, std::optional<ClientTls> tls = std::nullopt,
                      const std::string& from = "");
  ~TestClient();
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  bool send(const std::string& bytes);
  ClientResponse read(bool head = false);
  // Takes that many bytes of an answer for the next read().
  bool gather(size_t bytes);
  ClientResponse get(const std::string& path, const std::string& headers = "");
  // Whether something can be read, or the server has ended the connection. At once.
  bool has_bytes() const;
  // Waits until the server ends the connection; swallows what it sends meanwhile.
  bool closed(std::chrono::milliseconds patience = std::chrono::minutes(1));
  std::string server_certificate() const;  // PEM

 private:
  bool connect_socket(const std::string& address, const std::string& from);
  bool start_tls(const ClientTls& tls);
  long receive(char* to, size_t size);
  bool fill();

  int fd_ = -1;
  ssl_ctx_st* context_ = nullptr;
  ssl_st* ssl_ = nullptr;
  bool connected_ = false;
  std::string pending_;
};

// One request on a connection of its own.
ClientResponse fetch(const std::string& address, const std::string& path, const std::string& headers = "",
                     std::optional<ClientTls> tls = std::nullopt);

}  // namespace gpuledger::http
