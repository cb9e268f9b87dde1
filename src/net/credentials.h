// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuledger::net {

// The value of the Authorization header for "user:password".
std::string basic_auth(std::string_view user_password);

}  // namespace gpuledger::net
