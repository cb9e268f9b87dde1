// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpuledger::http {

// The page at /, from the files in this folder, compiled into the program.
std::string_view page_html();  // with kLinksMark where the links go
std::string_view page_css();
std::string_view page_js();  // with kKindsMark where the names of the kinds of owners go

inline constexpr std::string_view kLinksMark = "@LINKS@";
inline constexpr std::string_view kKindsMark = "@OWNER_KINDS@";

}  // namespace gpuledger::http
