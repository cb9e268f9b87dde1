// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace gpuledger::app {

inline constexpr int64_t kMillijoulesPerKwh = 3'600'000'000;
inline constexpr double kMicrojoulesPerKwh = 3.6e12;

double to_kwh(int64_t millijoules);
double hours_of(std::chrono::seconds time);

// For programs: all digits that a millijoule needs, so that a sum of lines is the meter's to the millijoule.
std::string exact_kwh(int64_t millijoules);
// For programs: at most 12 decimals, no exponent, no trailing zeros.
std::string plain_decimal(double value);
// For people: fixed decimals, thousands apart by a narrow space.
std::string grouped_decimal(double value, int decimals);

// 2026-10-01T00:00:00Z
std::string utc_text(std::chrono::sys_seconds time);
// 2026-10-01 00:00:00Z, for people.
std::string time_text(std::chrono::sys_seconds time);

}  // namespace gpuledger::app
