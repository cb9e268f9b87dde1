// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace gpuledger {

// Durations as in Go and Prometheus: one or more numbers, each with its unit (ns us µs ms s m h d w y), added up:
// 500ms, 1m30s, 1.5h, 1d. A day is 24 h, a year 365 days, as in Prometheus. "0" needs no unit. The message follows the
// name of the setting: `"5" is not a duration (write 500ms, 10s, 1m30s)`.
Result<Nanoseconds> parse_duration(std::string_view text);

// The shortest exact form in d h m s ms us ns: 90 s is "1m30s".
std::string write_duration(Nanoseconds duration);

}  // namespace gpuledger
