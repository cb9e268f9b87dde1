// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuledger {

// `text` for HTML, between tags or in an attribute with quotes.
std::string escape_html(std::string_view text);

}  // namespace gpuledger
