// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpuledger::http {

// What RFC 9112 wants of a server and Beast leaves to us.

// A line of the header that begins with a blank goes on with the one before; proxies disagree about what that means.
// bytes: from the first header line on, or from the request line, as much as has come.
bool has_folded_line(std::string_view bytes);

// The only transfer coding there is. "xchunked" and "gzip, chunked" are others.
bool is_chunked(std::string_view transfer_encoding);

// The value of an Expect header.
bool expects_continue(std::string_view expect);

}  // namespace gpuledger::http
