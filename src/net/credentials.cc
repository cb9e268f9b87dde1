// SPDX-License-Identifier: Apache-2.0
#include "net/credentials.h"

#include <openssl/evp.h>

#include <algorithm>

#include "base/file.h"

namespace gpuledger::net {
namespace {

constexpr size_t kLargestSecret = 64 << 10;

Result<std::string> read_password(const std::string& path) {
  GL_TRY(text, read_file(path, kLargestSecret).about("password"));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.empty()) return Error{Code::kMalformed, "password: " + path + " is empty"};
  if (text.find_first_of("\r\n") != text.npos) {
    return Error{Code::kMalformed, "password: " + path + " holds more than one line"};
  }
  return text;
}

}  // namespace

Result<std::string> read_token(const std::string& path) {
  GL_TRY(text, read_file(path, kLargestSecret).about("token"));
  const char* const space = " \t\r\n";
  const size_t begin = text.find_first_not_of(space);
  if (begin == std::string::npos) return Error{Code::kMalformed, "token: " + path + " is empty"};
  std::string token = text.substr(begin, text.find_last_not_of(space) + 1 - begin);
  // It becomes a header line: no line breaks allowed.
  const auto visible = [](char c) { return c > ' ' && c < 0x7f; };
  if (!std::all_of(token.begin(), token.end(), visible))
    return Error{Code::kMalformed, "token: " + path + " holds more than one word"};
  return token;
}

std::string basic_auth(std::string_view user_password) {
  std::string code(4 * ((user_password.size() + 2) / 3) + 1, '\0');  // and a zero at the end
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(code.data()),
                                   reinterpret_cast<const unsigned char*>(user_password.data()),
                                   static_cast<int>(user_password.size()));
  code.resize(static_cast<size_t>(size));
  return "Basic " + code;
}

Result<std::string> authorization(const Credentials& who) {
  if (!who.token_file.empty()) {
    GL_TRY(token, read_token(who.token_file));
    return "Bearer " + token;
  }
  std::string user_password = who.user_password;
  if (!who.password_file.empty()) {
    const std::string user = user_password.substr(0, user_password.find(':'));
    if (user.empty()) return Error{Code::kMalformed, "needs a user in the URL: https://USER@HOST"};
    GL_TRY(password, read_password(who.password_file));
    user_password = user + ":" + password;
  }
  return user_password.empty() ? std::string() : basic_auth(user_password);
}

}  // namespace gpuledger::net
