// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <csignal>
#include <optional>

#include "net/inflater.h"

// The only file here that includes Beast, which compiles slowly.
namespace gpuledger::net {
namespace {

namespace beast_http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;
using Time = Wire::Deadline;

constexpr size_t kLargestHead = 64 << 10;
constexpr size_t kReasonBytes = 64 << 10;
constexpr size_t kReasonToPost = 800;  // a line of a log
constexpr int kMostInterim = 10;
constexpr size_t kPiece = 64 << 10;
constexpr size_t kHeadPiece = 4 << 10;

// Beast's parser; passes the body on as it comes. Without a sink it is dropped.
class ReplyParser final : public beast_http::basic_parser<false> {
 public:
  ReplyParser(const HttpRequest& request, const BodySink& sink) : request_(request), sink_(sink) {
    eager(true);
    header_limit(kLargestHead);
    body_limit(boost::none);  // counted here, decompressed
  }

  HttpReply& reply() { return reply_; }
  bool stopped() const { return stopped_; }
  const std::optional<Error>& failure() const { return failure_; }
  // False: the sink has enough.
  bool pause() {
    stopped_ = is_wanted() && !sink_({});
    return !stopped_;
  }
  // 100, 102, 103: the answer comes after it.
  bool is_interim() const { return is_done() && reply_.status / 100 == 1 && reply_.status != 101; }
  // Whether all that counts is known.
  bool suffices() const { return !sink_ && is_header_done() && !is_interim(); }
  bool unpacked() const { return !inflater_ || inflater_->complete(); }

 private:
  void on_request_impl(beast_http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view, int, error_code&) override {
    reply_.status = static_cast<unsigned>(code);
  }
  void on_field_impl(beast_http::field name, string_view, string_view value, error_code& error) override {
    if (name == beast_http::field::retry_after) reply_.retry_after = std::string(value.substr(0, 64));
    if (name != beast_http::field::content_encoding || value == "identity") return;
    is_packed_ = true;
    if (!sink_ || reply_.status / 100 == 1) return;
    if (value != "gzip" || !request_.accept_gzip)
      return fail({Code::kMalformed, "a content encoding that was not asked for"}, error);
    inflater_.emplace();
  }
  void on_header_impl(error_code& error) override {
    if (is_wanted() && !sink_({})) stop(error);
  }
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  void on_chunk_header_impl(uint64_t, string_view, error_code&) override {}
  size_t on_chunk_body_impl(uint64_t, string_view bytes, error_code& error) override {
    return on_body_impl(bytes, error);
  }
  void on_finish_impl(error_code&) override {}

  size_t on_body_impl(string_view bytes, error_code& error) override {
    const std::string_view body(bytes.data(), bytes.size());
    const auto take = [&](std::string_view part) { return this->take(part, error); };
    if (!inflater_) {
      take(body);
    } else if (auto fed = inflater_->feed(body, take); !fed.ok() && !error) {
      fail(fed.error(), error);
    }
    return bytes.size();
  }

  bool take(std::string_view part, error_code& error) {
    if (!sink_) {
      const bool is_reason = reply_.status / 100 != 2 && !is_packed_;
      if (is_reason) reply_.body.append(part.substr(0, kReasonToPost - reply_.body.size()));
      taken_ += part.size();
      if (taken_ > request_.largest_body) stop(error);
    } else if (reply_.status != 200) {
      reply_.body.append(part.substr(0, kReasonBytes - reply_.body.size()));
      if (reply_.body.size() == kReasonBytes) stop(error);
    } else if (part.size() > request_.largest_body - taken_) {
      fail({Code::kMalformed, "an answer of more than " + std::to_string(request_.largest_body) + " bytes"}, error);
    } else if (taken_ += part.size(); !sink_(part)) {
      stop(error);
    }
    return !error;
  }

  bool is_wanted() const { return sink_ && reply_.status == 200; }
  void stop(error_code& error) {
    stopped_ = true;
    error = boost::system::errc::make_error_code(boost::system::errc::operation_canceled);
  }
  void fail(Error failure, error_code& error) {
    failure_ = std::move(failure);
    error = boost::system::errc::make_error_code(boost::system::errc::bad_message);
  }

  const HttpRequest& request_;
  const BodySink& sink_;
  HttpReply reply_;
  std::optional<Inflater> inflater_;
  std::optional<Error> failure_;
  uint64_t taken_ = 0;
  bool is_packed_ = false;
  bool stopped_ = false;
};

// The parser of one answer, and of the interim ones before it.
struct Answer {
  Answer(const HttpRequest& given, const BodySink& given_sink) : request(given), sink(given_sink) { begin(); }
  void begin() { parser.emplace(request, sink); }

  const HttpRequest& request;
  const BodySink& sink;
  std::optional<ReplyParser> parser{};
  int interim = 0;
};

std::string request_text(const HttpRequest& request, std::optional<std::string_view> body, const Peer& peer,
                         const std::string& user_agent) {
  std::string text = (body ? "POST " : "GET ") + request.target + " HTTP/1.1\r\nHost: " + peer.authority() +
                     "\r\nUser-Agent: " + user_agent + "\r\nConnection: close\r\n";
  if (request.accept_gzip) text += "Accept-Encoding: gzip\r\n";
  if (body) text += "Content-Length: " + std::to_string(body->size()) + "\r\n";
  for (const auto& [name, value] : request.headers) text.append(name).append(": ").append(value).append("\r\n");
  return text.append("\r\n").append(body.value_or(""));
}

// OpenSSL writes without MSG_NOSIGNAL, and a closed connection must be a normal error. Never undone: these threads do
// not need the signal.
void block_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// Feeds the parser; keeps unused bytes in `pending`.
Status parse(Answer& answer, std::string& pending) {
  while (!pending.empty() && !answer.parser->is_done()) {
    error_code error;
    const size_t used = answer.parser->put(boost::asio::buffer(pending), error);
    pending.erase(0, used);
    if (answer.parser->stopped()) return ok_status();
    if (answer.parser->failure()) return *answer.parser->failure();
    if (error == beast_http::error::need_more) break;
    if (error) return Error{Code::kMalformed, "not a proper HTTP answer: " + error.message()};
    if (answer.parser->is_interim()) {
      if (++answer.interim > kMostInterim) return Error{Code::kMalformed, "not a proper HTTP answer: endless 1xx"};
      answer.begin();
      continue;
    }
    if (used == 0) break;
  }
  if (pending.size() > kLargestHead) return Error{Code::kMalformed, "not a proper HTTP answer: endless line"};
  return ok_status();
}

Status read_reply(Wire& wire, Answer& answer, Time begin) {
  const HttpRequest& request = answer.request;
  std::optional<ReplyParser>& parser = answer.parser;
  const Time whole = begin + request.whole_within;
  const Time head = std::min(whole, Interrupt::Clock::now() + request.head_within);
  std::string pending, piece(kPiece, '\0');
  size_t head_bytes = 0;
  bool paused = request.pause.count() == 0;
  Time heard = Interrupt::Clock::now();
  while (!parser->is_done() && !parser->stopped()) {
    const bool in_head = !parser->is_header_done();
    const Time latest = in_head ? head : std::min(whole, heard + request.longest_silence);
    const Time until = in_head || paused ? latest : std::min(latest, heard + request.pause);
    // Reads the head in small pieces, to keep its limit closely; Beast's own limit is per line.
    auto got = wire.read(piece.data(), in_head ? kHeadPiece : kPiece, until);
    if (!got.ok() && got.error().code == Code::kTimeout && until < latest) {
      paused = true;
      if (!parser->pause()) break;
      continue;
    }
    if (!got.ok()) return got.error();
    if (*got == 0) {
      error_code error;
      if (parser->got_some()) parser->put_eof(error);
      if (error || !parser->is_done()) return Error{Code::kUnavailable, "connection cut: it ended within an answer"};
      break;
    }
    heard = Interrupt::Clock::now();
    paused = request.pause.count() == 0;
    if (in_head && (head_bytes += *got) > kLargestHead)
      return Error{Code::kMalformed, "not a proper HTTP answer: endless head"};
    pending.append(piece, 0, *got);
    GL_TRY_STATUS(parse(answer, pending));
  }
  if (!parser->stopped() && !parser->unpacked()) return Error{Code::kMalformed, "a gzip body without its end"};
  return ok_status();
}

}  // namespace

Result<HttpReply> HttpClient::exchange(const HttpRequest& request, std::optional<std::string_view> body,
                                       const BodySink& sink) const {
  block_sigpipe();
  const Time begin = Interrupt::Clock::now();
  GL_TRY(wire, Wire::open(peer_, begin + request.connect_within, interrupt_));
  const std::string text = request_text(request, body, peer_, user_agent_);
  GL_TRY_STATUS(wire->write(text, Interrupt::Clock::now() + request.head_within));
  Answer answer(request, sink);
  const Status read = read_reply(*wire, answer, begin);
  if (!read.ok() && !answer.parser->suffices()) return read.error();
  answer.parser->reply().peer_user = wire->peer_user();
  return std::move(answer.parser->reply());
}

Result<HttpReply> HttpClient::get(const HttpRequest& request, const BodySink& sink) const {
  return exchange(request, std::nullopt, sink);
}

Result<HttpReply> HttpClient::get(const HttpRequest& request) const {
  std::string body;
  auto reply = get(request, [&](std::string_view part) {
    body.append(part);
    return true;
  });
  if (reply.ok() && reply->status == 200) reply->body = std::move(body);
  return reply;
}

Result<HttpReply> HttpClient::post(const HttpRequest& request, std::string_view body) const {
  return exchange(request, body, nullptr);
}

}  // namespace gpuledger::net
