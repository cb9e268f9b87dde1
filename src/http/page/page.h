// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpuledger::http {

// The page at /, from the files in this folder, compiled into the program.
std::string_view page_html();  // with kLinksMark where the links go
std::string_view page_css();
std::string_view page_js();

inline constexpr std::string_view kLinksMark = "@LINKS@";

}  // namespace gpuledger::http
