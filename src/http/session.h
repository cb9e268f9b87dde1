// SPDX-License-Identifier: Apache-2.0
#pragma once

// Has Boost: only for server.cc.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/quote.h"
#include "http/background_worker.h"
#include "http/host_rule.h"
#include "http/http_date.h"
#include "http/peer.h"
#include "http/places.h"
#include "http/postbox.h"
#include "http/request_rules.h"
#include "http/routes.h"
#include "http/send_budget.h"
#include "http/server.h"
#include "http/web_settings.h"

namespace gpuledger::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

// For TCP and unix sockets, to instantiate the templates once.
using Protocol = asio::generic::stream_protocol;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<Protocol, Executor>;
using PlainStream = beast::basic_stream<Protocol, Executor>;
using TlsStream = asio::ssl::stream<PlainStream>;
using Timer =
    asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;

// Shared by all connections. For the io thread only, unless the type says otherwise.
struct Site {
  ServerLimits limits;
  RouteSettings routes;
  const SnapshotCell& snapshots;
  const Clock& clock;
  std::shared_ptr<WebSettings> web;
  const HostRule hosts;
  const Answerer answerer;
  const std::shared_ptr<Postbox> postbox;  // for answers that come later
  std::unique_ptr<BackgroundWorker> worker{};
  PackedSnapshot packed{};
  Places places{limits.connections, limits.connections_per_peer};  // owns the connections until they finish
  SendBudget sending{limits.bytes_being_sent};
};

// One client, from accept to close. Runs on the io thread only; every path ends in finish().
template <typename Stream>
class Session final : public Connection, public std::enable_shared_from_this<Session<Stream>> {
 public:
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;

  template <typename... StreamArguments>
  Session(Site& site, std::string peer, std::shared_ptr<WebState> web, StreamArguments&&... arguments)
      : Connection(std::move(peer)),
        site_(site),
        accepted_under_(std::move(web)),
        stream_(std::forward<StreamArguments>(arguments)...),
        delay_(socket().get_executor()),
        buffer_(site.limits.header_bytes + site.limits.body_bytes + kPiece) {}

  void start() {
    set_up_socket(socket().native_handle());
    if constexpr (kTls) {
      set_deadline(site_.limits.header_timeout);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = self()](error_code error) { self->on_handshake(error); });
    } else {
      read_request();
    }
  }

  void finish() override {
    const auto keep_alive = self();
    delay_.cancel();
    forget_question();
    lowest().close();
    // The data being written stays until the write ends: its handler holds this object.
    site_.sending.end(*this);
    site_.places.remove(*this);
  }

 private:
  using Parser = beast::http::request_parser<beast::http::string_body>;
  using Header = beast::http::request_header<>;
  using Response = beast::http::response<beast::http::span_body<const char>>;
  using Serializer = beast::http::response_serializer<beast::http::span_body<const char>>;

  auto self() { return this->shared_from_this(); }
  PlainStream& lowest() {
    if constexpr (kTls)
      return stream_.next_layer();
    else
      return stream_;
  }
  Socket& socket() { return lowest().socket(); }

  // For all reads and writes until the next call.
  void set_deadline(Nanoseconds time) {
    lowest().expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(time));
  }

  void on_handshake(error_code error) {
    if (!error) return read_request();
    const bool plain_http = error.category() == asio::error::get_ssl_category() &&
                            ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_HTTP_REQUEST;
    if (!plain_http) return finish();
    static constexpr std::string_view kAnswer =
        "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
        "this port speaks HTTPS\n";
    asio::async_write(lowest(), asio::buffer(kAnswer.data(), kAnswer.size()),
                      [self = self()](error_code failed, size_t) { failed ? self->finish() : self->drain(0); });
  }

  void wait_for_request() {
    if (buffer_.size() > 0) return read_request();  // pipelined
    set_deadline(site_.limits.idle_timeout);
    read_more([self = self()] { self->read_request(); });
  }

  void read_request() {
    set_deadline(site_.limits.header_timeout);
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(site_.limits.header_bytes));
    parser_->body_limit(site_.limits.body_bytes);
    parser_->eager(false);  // stops after the header
    header_.reset();
    told_to_continue_ = false;
    parse();
  }

  // Beast's own async_read would hide the header's bytes, and it joins lines that RFC 9112 forbids.
  void parse() {
    while (buffer_.size() > 0) {
      const auto bytes = buffer_.cdata();
      if (!parser_->is_header_done() && has_folded_line({static_cast<const char*>(bytes.data()), bytes.size()}))
        return refuse(400, "a header must not be folded over lines");
      error_code error;
      const size_t used = parser_->put(bytes, error);
      buffer_.consume(used);
      if (error && error != beast::http::error::need_more) return on_parse_error(error);
      if (parser_->is_header_done() && !header_) take_header();
      if (parser_->is_done()) return on_request();
      if (used == 0) break;
    }
    if (parser_->is_header_done() && !told_to_continue_ && header().version() == 11 &&
        expects_continue(field(beast::http::field::expect)))
      return tell_to_continue();
    if (buffer_.size() + kPiece > buffer_.max_size()) return refuse(431, "the request header is too large");
    read_more([self = self()] { self->parse(); });
  }

  // Beast adds the fields of a trailer to the header. They may be anybody's: a proxy that checks the header lets a
  // trailer pass.
  void take_header() {
    header_ = parser_->get().base();
    client_keeps_alive_ = parser_->get().keep_alive();
    parser_->eager(true);
  }

  // Until it is complete, what is there of it.
  const Header& header() const { return header_ ? *header_ : parser_->get().base(); }

  template <typename Next>
  void read_more(Next next) {
    stream_.async_read_some(buffer_.prepare(kPiece), [self = self(), next](error_code error, size_t size) {
      // Closed or too slow: there is no client to answer.
      if (error) return self->finish();
      self->buffer_.commit(size);
      next();
    });
  }

  void tell_to_continue() {
    told_to_continue_ = true;
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()),
                      [self = self()](error_code error, size_t) { error ? self->finish() : self->parse(); });
  }

  void on_parse_error(error_code code) {
    using beast::http::error;
    if (code == error::header_limit || code == error::buffer_overflow)
      return refuse(431, "the request header is too large");
    if (code == error::body_limit) return refuse(413, "the request body is too large");
    refuse(400, "this is not a request of HTTP/1.0 or HTTP/1.1");
  }

  void on_request() {
    site_.places.answering(*this);
    requested_ = std::chrono::steady_clock::now();
    const Header& request = header();
    if (request.version() == 11 && request.count(beast::http::field::host) != 1)
      return refuse(400, "a request of HTTP/1.1 must have one Host header");
    const std::string coding = field(beast::http::field::transfer_encoding);
    if (!coding.empty() && !is_chunked(coding)) return refuse(501, "the only transfer coding is chunked");
    if (const std::string expect = field(beast::http::field::expect); !expect.empty() && !expects_continue(expect))
      return refuse(417, "the only expectation is 100-continue");
    if (came_by_a_strange_name()) return send(strange_name_reply());
    authorise();
  }

  Reply strange_name_reply() {
    constexpr size_t kLongestName = 253;
    const std::string host = field(beast::http::field::host);
    return text_reply(403, "host name " + in_quotes(clean_text(without_port(host), kLongestName)) +
                               " is not allowed for browsers; add it to --allowed-hosts");
  }

  // With TLS the browser checks the name itself, and sends passwords only to their name.
  bool came_by_a_strange_name() {
    const auto web = site_.web->current();
    if (web->tls || web->passwords) return false;
    for (const auto& each : header())
      if (is_browsers_header({each.name_string().data(), each.name_string().size()}))
        return !site_.hosts.allows(field(beast::http::field::host));
    return false;
  }

  std::string field(beast::http::field name) const {
    std::string all;  // a list may be split over several lines
    const auto [first, last] = header().equal_range(name);
    for (auto each = first; each != last; ++each) {
      if (!all.empty()) all += ", ";
      all += std::string_view(each->value().data(), each->value().size());
    }
    return all;
  }

  void authorise() {
    const auto web = site_.web->current();
    auto credentials =
        web->passwords ? parse_basic_auth(field(beast::http::field::authorization)) : std::optional<Credentials>();
    const auto known = !web->passwords ? PasswordCheck::Recall::kGood
                       : credentials   ? web->passwords->recall(*credentials)
                                       : PasswordCheck::Recall::kBad;
    const bool good = known == PasswordCheck::Recall::kGood;
    // Probes are not limited, guesses of passwords are.
    if (!(good && asks_for_probe()) && !web->bucket.take(site_.clock.now().steady))
      return send(text_reply(429, "too many requests"));
    if (good) return answer();
    if (!credentials) return send(denial());
    if (known == PasswordCheck::Recall::kBad) return send_later(denial());
    check_password(web, std::move(*credentials));
  }

  bool asks_for_probe() {
    const auto target = header().target();
    return is_probe({target.data(), target.size()});
  }

  void check_password(const std::shared_ptr<WebState>& web, Credentials credentials) {
    lowest().expires_never();
    // Weak: a connection closed meanwhile is destroyed on this thread, not on the worker's.
    auto done = [weak = this->weak_from_this(), executor = socket().get_executor()](bool good) {
      asio::post(executor, [weak, good] {
        const auto session = weak.lock();
        if (!session || !session->socket().is_open()) return;
        session->site_.places.release(*session);
        good ? session->answer() : session->send_later(session->denial());
      });
    };
    auto work = [web, credentials = std::move(credentials)] { return web->passwords->verify(credentials); };
    if (site_.worker->submit(peer(), std::move(work), std::move(done))) return site_.places.keep(*this);
    Reply busy = text_reply(503, "too many passwords to check at once");
    busy.headers.emplace_back("Retry-After", "1");
    send_later(std::move(busy));
  }

  static Reply denial() {
    Reply reply = text_reply(401, "a user and a password are needed");
    reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"gpu-ledger\", charset=\"UTF-8\"");
    return reply;
  }

  // Slows down guessing, and hides by its time whether the user exists.
  void send_later(Reply reply) {
    lowest().expires_never();
    delay_.expires_at(requested_ +
                      std::chrono::duration_cast<std::chrono::steady_clock::duration>(site_.limits.refusal_delay));
    delay_.async_wait([self = self(), reply = std::move(reply)](error_code cancelled) mutable {
      if (!cancelled && self->socket().is_open()) self->send(std::move(reply));
    });
  }

  void answer() {
    const Header& request = header();
    if (asks_for_probe()) site_.places.keep(*this);
    if (site_.answerer) return ask();
    const std::string accept = field(beast::http::field::accept);
    const std::string accept_encoding = field(beast::http::field::accept_encoding);
    const RequestFacts facts{{request.method_string().data(), request.method_string().size()},
                             {request.target().data(), request.target().size()},
                             accept,
                             accept_encoding};
    send(route(facts, site_.routes, site_.snapshots.load(), site_.packed, site_.clock.now().steady));
  }

  // Has the answer computed elsewhere. Only the first of the answer and the deadline is sent.
  void ask() {
    const Header& request = header();
    lowest().expires_never();
    site_.places.keep(*this);
    const uint64_t question = ++questions_;
    waiting_ = true;
    const auto patience = std::chrono::duration_cast<std::chrono::steady_clock::duration>(site_.limits.answer_timeout);
    wait_for_answer(question, std::chrono::steady_clock::now() + patience);
    watch_client(question);
    // Weak: a connection closed meanwhile is destroyed on this thread, not on the answerer's.
    auto done = [weak = this->weak_from_this(), postbox = site_.postbox, question](Reply reply) {
      postbox->post([weak, question, reply = std::move(reply)]() mutable {
        if (const auto session = weak.lock()) session->take_answer(question, std::move(reply));
      });
    };
    forget_ = site_.answerer({{request.method_string().data(), request.method_string().size()},
                              {request.target().data(), request.target().size()},
                              peer()},
                             std::move(done));
  }

  // Nothing is read meanwhile, so only the state of the socket tells that the client left. It is looked at when
  // something comes, and four times a second: after unread bytes nothing tells that the end has come.
  void watch_client(uint64_t question) {
    socket().async_wait(Socket::wait_read, [self = self(), question](error_code error) {
      if (!error && self->waits_for(question) && has_left(self->socket().native_handle())) self->finish();
    });
  }
  void wait_for_answer(uint64_t question, std::chrono::steady_clock::time_point deadline) {
    delay_.expires_at(std::min(deadline, std::chrono::steady_clock::now() + kLookForClient));
    delay_.async_wait([self = self(), question, deadline](error_code cancelled) {
      if (cancelled || !self->waits_for(question)) return;
      if (has_left(self->socket().native_handle())) return self->finish();
      if (std::chrono::steady_clock::now() < deadline) return self->wait_for_answer(question, deadline);
      self->forget_question();
      self->send(text_reply(504, "the answer took too long; ask for a shorter time"));
    });
  }

  bool waits_for(uint64_t question) { return waiting_ && question == questions_ && socket().is_open(); }

  void forget_question() {
    waiting_ = false;
    if (const Forget forget = std::exchange(forget_, nullptr)) forget();
  }

  // A late answer to an earlier question is not the answer to this one.
  void take_answer(uint64_t question, Reply reply) {
    if (!waits_for(question)) return;
    waiting_ = false;
    forget_ = nullptr;
    delay_.cancel();
    send(std::move(reply));
  }

  // Bytes after an unreadable request are not a request, so the connection is closed.
  void refuse(unsigned status, const char* why) {
    keep_alive_allowed_ = false;
    send(text_reply(status, why));
  }

  void send(Reply reply) {
    const auto web = site_.web->current();
    const Header& request = header();
    // Accepted under older certificates or rules: served once more, then closed.
    if (web->tls != accepted_under_->tls) keep_alive_allowed_ = false;
    body_ = std::move(reply.body);
    response_ = Response(beast::http::int_to_status(reply.status), request.version() == 10 ? 10 : 11);
    response_.set(beast::http::field::date, http_date(site_.clock.now().wall));
    response_.set(beast::http::field::content_type, reply.content_type);
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    for (const auto& [name, value] : reply.headers) response_.set(name, value);
    for (const auto& [name, value] : web->config.headers) response_.set(name, value);
    if (request.method() != beast::http::verb::head) response_.body() = {body_->data(), body_->size()};
    response_.content_length(body_->size());
    response_.keep_alive(keep_alive_allowed_ && client_keeps_alive_);
    set_deadline(site_.limits.write_timeout);
    site_.sending.begin(*this, body_, site_.clock.now().steady);
    serializer_.emplace(response_);
    write();
  }

  void write() {
    beast::http::async_write_some(stream_, *serializer_, [self = self()](error_code error, size_t size) {
      if (error || !self->socket().is_open()) return self->finish();
      self->site_.sending.sent(*self, size);
      if (!self->serializer_->is_done()) {
        self->site_.places.answering(*self);
        return self->write();
      }
      self->site_.sending.end(*self);
      self->site_.places.release(*self);
      self->site_.places.answered(*self);
      self->body_.reset();  // it may be large and old
      if (self->response_.keep_alive()) return self->wait_for_request();
      self->close_politely();
    });
  }

  void close_politely() {
    set_deadline(kFarewell);
    if constexpr (kTls) {
      stream_.async_shutdown([self = self()](error_code) { self->drain(0); });
    } else {
      drain(0);
    }
  }

  // Closing with unread bytes would reset the connection, and the client might lose our last answer.
  void drain(size_t drained) {
    error_code ignored;
    if (drained == 0) socket().shutdown(Socket::shutdown_send, ignored);
    buffer_.clear();
    lowest().async_read_some(buffer_.prepare(kPiece), [self = self(), drained](error_code error, size_t size) {
      if (error || drained + size > kMaxDrained) return self->finish();
      self->drain(drained + size);
    });
  }

  static constexpr Nanoseconds kFarewell = std::chrono::seconds(2);
  static constexpr auto kLookForClient = std::chrono::milliseconds(250);
  static constexpr size_t kMaxDrained = 256 * 1024;
  static constexpr size_t kPiece = 1024;

  Site& site_;
  const std::shared_ptr<WebState> accepted_under_;
  Stream stream_;
  Timer delay_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::optional<Header> header_;
  bool client_keeps_alive_ = false;
  bool told_to_continue_ = false;
  bool waiting_ = false;  // for the answerer
  Forget forget_;         // the question that it waits for
  uint64_t questions_ = 0;
  std::chrono::steady_clock::time_point requested_;
  Response response_;
  std::optional<Serializer> serializer_;
  std::shared_ptr<const std::string> body_;  // what response_ points into
  bool keep_alive_allowed_ = true;
};

}  // namespace gpuledger::http
