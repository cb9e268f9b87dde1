// SPDX-License-Identifier: Apache-2.0
#include "http/server.h"

#include <fmt/core.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>

#include "http/listener.h"
#include "http/session.h"
#include "http/thread_setup.h"
#include "task/thread.h"

namespace gpuledger::http {
namespace {

using Acceptor = asio::basic_socket_acceptor<Protocol, Executor>;

// One open listen address.
struct Door {
  Door(Listener opened, asio::io_context& io)
      : listener(std::move(opened)), acceptor(io.get_executor()), pause(io.get_executor()) {}

  Listener listener;  // owns the socket file until the end
  Acceptor acceptor;
  Timer pause;
};

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, const SnapshotCell& snapshots, const Clock& clock, std::shared_ptr<WebSettings> web)
      : site_{options.limits,
              {options.metrics_path, options.stale_after},
              snapshots,
              clock,
              std::move(web),
              HostRule(options.allowed_hosts, read_host_name()),
              std::move(options.answerer),
              std::make_shared<Postbox>(io_)} {}

  Status open(const std::string& text, const std::string& setting) {
    auto address = parse_listen_address(text);
    if (!address.ok()) return Error{address.error().code, "listen address " + address.error().message};
    GL_TRY(listener, Listener::open(*address, setting));
    Door& door = doors_.emplace_back(std::move(listener), io_);
    error_code error;
    door.acceptor.assign(Protocol(door.listener.family(), 0), door.listener.release_fd(), error);
    if (error) return Error{Code::kInternal, fmt::format("cannot listen on {}: {}", text, error.message())};
    return ok_status();
  }

  Status run(bool watch_web_config) {
    const Nanoseconds interval = watch_web_config ? site_.limits.web_config_poll : Nanoseconds(0);
    site_.worker =
        std::make_unique<BackgroundWorker>(site_.limits.password_queue, site_.limits.password_queue_per_peer);
    GL_TRY_STATUS(site_.worker->start(interval, [web = site_.web] { web->reload_if_changed(); }));
    for (Door& door : doors_) accept(door);
    return thread_.start([this](const std::stop_token&) {
      set_up_thread("http");
      io_.run();
    });
  }

  std::vector<std::string> addresses() const {
    std::vector<std::string> all;
    for (const Door& door : doors_) all.push_back(door.listener.address());
    return all;
  }

  Status reload() { return site_.web->reload(); }

  void change_stale_after(Nanoseconds stale_after) {
    asio::post(io_, [this, stale_after] { site_.routes.stale_after = stale_after; });
  }

  void stop() {
    if (!thread_.running()) return;
    site_.web->close();
    site_.worker->stop();  // first: it posts to the io context
    site_.postbox->close();
    asio::post(io_, [this] {
      for (Door& door : doors_) {
        error_code ignored;
        door.acceptor.close(ignored);
        door.pause.cancel();
      }
      for (const auto& connection : site_.places.all()) connection->finish();
    });
    thread_.join();
    doors_.clear();
  }

 private:
  void accept(Door& door) {
    door.acceptor.async_accept([this, &door](error_code error, Socket socket) {
      if (!door.acceptor.is_open()) return;
      if (!error) begin(std::move(socket));
      // Out of descriptors or memory: a connection must be closed. An immediate retry would spin if not.
      const bool exhausted = error && error != asio::error::connection_aborted;
      if (!exhausted || site_.places.end_one()) return accept(door);
      door.pause.expires_after(std::chrono::milliseconds(100));
      door.pause.async_wait([this, &door](error_code cancelled) {
        if (!cancelled && door.acceptor.is_open()) accept(door);
      });
    });
  }

  void begin(Socket socket) {
    std::string peer = peer_of(socket.native_handle());
    if (!site_.places.make_room(peer)) return;
    auto web = site_.web->current();
    if (!web->tls) return add<PlainStream>(std::move(peer), std::move(web), std::move(socket));
    // The stream takes its own reference from this temporary wrapper.
    SSL_CTX_up_ref(web->tls->native());
    asio::ssl::context context(web->tls->native());
    add<TlsStream>(std::move(peer), std::move(web), PlainStream(std::move(socket)), context);
  }

  template <typename Stream, typename... Arguments>
  void add(std::string peer, std::shared_ptr<WebState> web, Arguments&&... arguments) {
    const auto session = std::make_shared<Session<Stream>>(site_, std::move(peer), std::move(web),
                                                           std::forward<Arguments>(arguments)...);
    site_.places.add(session);
    session->start();
  }

  asio::io_context io_{1};
  Site site_;
  std::list<Door> doors_;
  task::Thread thread_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop();
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, const SnapshotCell& snapshots,
                                              const Clock& clock) {
  if (options.listen_addresses.empty()) return Error{Code::kMalformed, "no listen address given"};
  if (!options.metrics_path.starts_with('/'))
    return Error{Code::kMalformed, fmt::format("metrics path \"{}\" must begin with /", options.metrics_path)};
  GL_TRY(web, WebSettings::open(options.web_config_file, std::move(options.on_web_config)));
  const auto addresses = options.listen_addresses;
  const std::string setting = options.listen_setting;
  const bool watch_web_config = !options.web_config_file.empty();
  auto impl = std::make_unique<Impl>(std::move(options), snapshots, clock, std::move(web));
  for (const std::string& address : addresses) GL_TRY_STATUS(impl->open(address, setting));
  GL_TRY_STATUS(impl->run(watch_web_config).about("the HTTP server"));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::vector<std::string> Server::addresses() const {
  return impl_->addresses();
}

Status Server::reload() {
  return impl_->reload();
}

void Server::change_stale_after(Nanoseconds stale_after) {
  impl_->change_stale_after(stale_after);
}

void Server::stop() {
  impl_->stop();
}

}  // namespace gpuledger::http
