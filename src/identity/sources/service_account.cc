// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/service_account.h"

#include <sys/utsname.h>

#include <algorithm>

#include "base/file.h"
#include "base/version.h"

namespace gpuledger::identity {
namespace {

constexpr size_t kLongestToken = 64 << 10;

}  // namespace

Result<std::string> read_token(const std::string& path) {
  auto text = read_file(path, kLongestToken);
  if (!text) return Error{text.error().code, "token: " + text.error().message};
  const char* const space = " \t\r\n";
  const size_t begin = text->find_first_not_of(space);
  if (begin == std::string::npos) return Error{Code::kMalformed, "token: " + path + " is empty"};
  std::string token = text->substr(begin, text->find_last_not_of(space) + 1 - begin);
  // It becomes a header line: no line breaks allowed.
  const auto visible = [](char c) { return c > ' ' && c < 0x7f; };
  if (!std::all_of(token.begin(), token.end(), visible))
    return Error{Code::kMalformed, "token: " + path + " holds more than one word"};
  return token;
}

std::string user_agent() {
  utsname machine{};
  ::uname(&machine);
  std::string arch = machine.machine;
  if (arch == "x86_64") arch = "amd64";
  if (arch == "aarch64") arch = "arm64";
  return std::string("gpu-ledger/") + version() + " (linux/" + arch + ")";
}

}  // namespace gpuledger::identity
