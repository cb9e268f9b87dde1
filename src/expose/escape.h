// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuledger::expose {

// Both make any text a valid part of one line: invalid UTF-8 and control characters become U+FFFD, the
// rest is escaped. Process and container names are not trusted.
void append_label_value(std::string& out, std::string_view value);
void append_help(std::string& out, std::string_view help, bool escape_quotes);

bool is_metric_name(std::string_view name);

// UTF-8 without control characters except tab.
bool is_plain_text(std::string_view text);

}  // namespace gpuledger::expose
