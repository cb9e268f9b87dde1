// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpuledger::http {

// Rules of RFC 9112 that Beast leaves to us.

// A header line that begins with a blank continues the one before; proxies disagree about its meaning. bytes: from the
// first header line or the request line on, as far as received.
bool has_folded_line(std::string_view bytes);

// The only transfer coding. "xchunked" and "gzip, chunked" are others.
bool is_chunked(std::string_view transfer_encoding);

// The value of an Expect header.
bool expects_continue(std::string_view expect);

}  // namespace gpuledger::http
