// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuledger::http {

// The identity of a client, for its limits: an IPv4 address, the first half of an IPv6 address (a client with one
// address of a /64 has all), or the user at the other end of a unix socket. Not for display.
std::string peer_of(int socket);

// Whether the client has closed its side. Who only ends what it sends (shutdown) counts too: the two look the same.
bool has_left(int socket);

// For an accepted socket: limits unread bytes in the kernel, which count as our memory.
void set_up_socket(int socket);

}  // namespace gpuledger::http
