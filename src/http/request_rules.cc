// SPDX-License-Identifier: Apache-2.0
#include "http/request_rules.h"

namespace gpuledger::http {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if ((a[i] >= 'A' && a[i] <= 'Z' ? a[i] - 'A' + 'a' : a[i]) != b[i]) return false;
  return true;
}

}  // namespace

bool has_folded_line(std::string_view bytes) {
  const std::string_view header = bytes.substr(0, bytes.find("\r\n\r\n"));  // a body is arbitrary
  return header.find("\r\n ") != std::string_view::npos || header.find("\r\n\t") != std::string_view::npos;
}

bool is_chunked(std::string_view transfer_encoding) {
  return same_word(transfer_encoding, "chunked");
}

bool expects_continue(std::string_view expect) {
  return same_word(expect, "100-continue");
}

}  // namespace gpuledger::http
