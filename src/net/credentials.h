// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuledger::net {

// How this program authenticates to a server. The files may change while the program runs.
struct Credentials {
  std::string user_password;  // "user:password"; empty: none
  std::string password_file;  // in place of that password
  std::string token_file;     // a bearer token, in place of user and password
};

// The value of the Authorization header, empty without credentials. It reads the files: call it for every request.
Result<std::string> authorization(const Credentials& who);

// The same for "user:password".
std::string basic_auth(std::string_view user_password);

// The token without surrounding white space.
Result<std::string> read_token(const std::string& path);

}  // namespace gpuledger::net
