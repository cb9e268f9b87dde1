// SPDX-License-Identifier: Apache-2.0
// What must hold of what HTTP peers send, beside what Beast reads. The first byte says which: even: a header's value;
// odd: a gzip body, which must give the same in pieces as in one.

#include <algorithm>
#include <cstdint>
#include <string>

#include "http/host_rule.h"
#include "http/negotiate.h"
#include "http/password_check.h"
#include "http/request_rules.h"
#include "invariant.h"
#include "net/backoff.h"
#include "net/inflater.h"

namespace {

using gpuledger::fuzz::require;

void check_header(std::string_view text) {
  using namespace gpuledger::http;
  (void)negotiate_format(text);
  (void)negotiate_gzip(text);
  (void)has_folded_line(text);
  (void)is_chunked(text);
  (void)expects_continue(text);
  (void)is_browsers_header(text);
  (void)HostRule({"a.example.org"}, "b").allows(text);
  if (const auto credentials = parse_basic_auth(text))
    require(credentials->user.find(':') == std::string::npos, "a user's name holds no colon");
  if (const auto pause = gpuledger::net::parse_retry_after(text))
    require(pause->count() >= 0 && pause->count() <= 3600, "a pause is not too long");
}

struct Unpacked {
  std::string text;
  bool good = true;
  bool complete = false;
};

constexpr size_t kMost = 64 << 10;

// Stops after 64 KiB, as a caller does at its limit.
Unpacked unpack(std::string_view packed, size_t piece) {
  Unpacked out;
  gpuledger::net::Inflater inflater;
  for (size_t at = 0; at < packed.size() && out.good && out.text.size() < kMost; at += piece) {
    const auto take = [&](std::string_view part) {
      out.text += part;
      return out.text.size() < kMost;
    };
    out.good = inflater.feed(packed.substr(at, piece), take).ok();
  }
  out.complete = inflater.complete();
  return out;
}

void check_body(std::string_view packed, size_t piece) {
  const Unpacked whole = unpack(packed, packed.size() + 1), pieces = unpack(packed, piece);
  if (!whole.good) return;
  if (whole.text.size() >= kMost) {  // where the other stopped, or whether it met an error first, depends on the pieces
    const size_t both = std::min(whole.text.size(), pieces.text.size());
    require(pieces.text.compare(0, both, whole.text, 0, both) == 0, "the same until the limit");
    return;
  }
  require(pieces.good && pieces.text == whole.text, "the same in pieces as in one");
  require(pieces.complete == whole.complete, "as complete in pieces as in one");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes + 1), size - 1);
  if (bytes[0] % 2 == 0) {
    check_header(text);
  } else {
    check_body(text, 1 + bytes[0] / 2);
  }
  return 0;
}
