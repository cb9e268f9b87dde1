// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuledger::app {

// A text as a cell of CSV: quoted as RFC 4180 says, always on one line (what could break a line or change the writing
// direction is removed). A spreadsheet takes a text that begins with = + - @ for a formula, also after white space, and
// names come from tenants: such a text gets an apostrophe before it, which spreadsheets take for "this is text". The
// page's CSV has the same rule: cell() in src/http/page/download.js.
std::string csv_text(std::string_view text);

}  // namespace gpuledger::app
