// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"

namespace gpuledger::http {

// "Sun, 06 Nov 1994 08:49:37 GMT", for the Date header.
std::string http_date(Nanoseconds wall);

}  // namespace gpuledger::http
