// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/web_config.h"

namespace gpuledger::http {

// The words of a web config, most of them Go's, and their meaning here. Empty: unknown.

std::optional<ClientAuth> find_client_auth(std::string_view name);
std::optional<TlsVersion> find_tls_version(std::string_view name);
std::optional<std::string> find_cipher_suite(std::string_view name);  // up to TLS 1.2
bool is_tls13_suite(std::string_view name);
std::optional<std::string> find_curve(std::string_view name);

// Only these headers can be set, some only to certain values; an empty value leaves the header out.
bool is_settable_header(std::string_view name);
bool is_header_value(std::string_view name, std::string_view value);

std::optional<int> find_bcrypt_cost(std::string_view hash);
std::optional<int> find_count(std::string_view text);

}  // namespace gpuledger::http
