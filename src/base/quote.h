// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuledger {

// `text` as a JSON string with quotes: always valid UTF-8 on one line. Also used for log lines and error messages,
// because process names, environment and files may contain anything: characters that could start a new line, move a
// terminal's cursor or change the writing direction are escaped, bytes that are not UTF-8 become \ufffd.
void append_quoted(std::string& out, std::string_view text);
std::string in_quotes(std::string_view text);

// An error that shows the text and says what is wrong with it: "1x" is not a time
Error malformed(std::string_view text, std::string_view why);

// For outside names that become labels: what append_quoted escapes is removed, a run of bytes that are not UTF-8
// becomes one U+FFFD. At most max_bytes, cut between characters.
std::string clean_text(std::string_view text, size_t max_bytes);

}  // namespace gpuledger
