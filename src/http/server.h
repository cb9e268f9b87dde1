// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/reply.h"
#include "model/snapshot.h"

namespace gpuledger::http {

// Beyond these limits a client is refused or closed.
struct ServerLimits {
  size_t header_bytes = 8 * 1024;
  size_t body_bytes = 4 * 1024;
  size_t connections = 256;            // beyond it one is closed, see Places
  size_t connections_per_peer = 64;    // same, among the peer's own
  size_t bytes_being_sent = 16 << 20;  // texts of snapshots; beyond it the slowest client is closed
  size_t password_queue = 64;          // unknown credentials waiting for bcrypt; more get 503
  size_t password_queue_per_peer = 32;
  Nanoseconds refusal_delay = std::chrono::seconds(1);    // from a wrong password to its answer
  Nanoseconds header_timeout = std::chrono::seconds(10);  // from the first byte, or from the connection
  Nanoseconds idle_timeout = std::chrono::seconds(60);    // between two requests
  Nanoseconds write_timeout = std::chrono::seconds(30);
  Nanoseconds answer_timeout = std::chrono::seconds(60);  // for a computed answer; then 504
  Nanoseconds web_config_poll = std::chrono::seconds(1);
};

struct ServerOptions {
  std::vector<std::string> listen_addresses;        // ":9400", "host:9400", "[::1]:0", "unix:/path"
  std::string listen_setting = "--listen-address";  // where they are from, for messages
  std::string metrics_path = "/metrics";
  std::vector<std::string> allowed_hosts;  // that browsers may use; see HostRule
  std::string web_config_file;             // empty: plain HTTP, no authentication
  Nanoseconds stale_after{0};              // how old a snapshot may be for /-/ready; 0: any age
  ServerLimits limits;
  // If given, it answers every request, and no snapshot is served.
  Answerer answerer;
  // Called with the result when the web config or a file it names changed and was read again; on failure the earlier
  // settings stay. Runs on a server thread; must not call the server.
  std::function<void(const Status&)> on_web_config;
};

// Serves finished snapshots, or what an answerer computes. One io thread, which never waits for a client, a file or a
// hash, and one background thread for both.
class Server {
 public:
  // The cell and the clock must outlive the server.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, const SnapshotCell& snapshots,
                                               const Clock& clock);
  ~Server();  // stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The actual addresses, with the ports chosen by the kernel: "[::]:9400", "unix:/path".
  std::vector<std::string> addresses() const;

  // Reads the web config and its files now. On failure the earlier settings stay. Any thread.
  Status reload();

  // For a new sample interval: the new age limit of a snapshot. Any thread.
  void change_stale_after(Nanoseconds stale_after);

  // Closes every connection, even unfinished, and returns within half a second. One thread.
  void stop();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuledger::http
