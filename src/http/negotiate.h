// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/format.h"

namespace gpuledger::http {

// The format for an Accept header (empty: none was sent). Who takes neither gets the text, as from other exporters: a
// browser that asks for a page is better served by it than by an error.
Format negotiate_format(std::string_view accept);

// Whether an Accept-Encoding header (empty: none was sent) prefers gzip to the plain bytes.
bool negotiate_gzip(std::string_view accept_encoding);

}  // namespace gpuledger::http
