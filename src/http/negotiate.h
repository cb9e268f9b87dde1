// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/format.h"

namespace gpuledger::http {

// The format for an Accept header (empty: not sent). A client that accepts neither gets the text, as from other
// exporters: for a browser it is better than an error.
Format negotiate_format(std::string_view accept);

// Whether an Accept-Encoding header (empty: not sent) prefers gzip to plain.
bool negotiate_gzip(std::string_view accept_encoding);

}  // namespace gpuledger::http
