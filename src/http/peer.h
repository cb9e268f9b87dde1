// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuledger::http {

// Who is at the other end, for what one client may take: an IPv4 address, the first half of an IPv6 address (whoever
// has one address of a /64 has them all), or the user at the other end of a unix socket. Not for people.
std::string peer_of(int socket);

// For an accepted socket: little of what a client has not read waits in the kernel, which counts as our memory.
void set_up_socket(int socket);

}  // namespace gpuledger::http
