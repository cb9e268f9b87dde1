// SPDX-License-Identifier: Apache-2.0
#include "sim_clock.h"

#include <chrono>
#include <cstdlib>
#include <string_view>

namespace gpuledger::sim {
namespace {

int64_t steady_nanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t wall_now_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Status SimClock::start() {
  const char* mode = std::getenv("GPU_LEDGER_SIM_CLOCK");
  const std::string_view wanted = mode && *mode ? mode : "real";
  if (wanted != "real" && wanted != "virtual") {
    return Error{Code::kMalformed, "GPU_LEDGER_SIM_CLOCK must be real or virtual, not '" + std::string(wanted) + "'"};
  }
  virtual_ = wanted == "virtual";
  given_epoch_ = false;
  if (virtual_) {
    epoch_micros_ = kVirtualEpoch;
    return ok_status();
  }
  epoch_micros_ = wall_now_micros();
  steady_start_nanos_ = steady_nanos();
  if (const char* epoch = std::getenv("GPU_LEDGER_SIM_EPOCH"); epoch && *epoch) {
    char* end = nullptr;
    const double seconds = std::strtod(epoch, &end);
    if (*end != '\0' || !(seconds > 0) || seconds > 1e11) {
      return Error{Code::kMalformed,
                   "GPU_LEDGER_SIM_EPOCH must be seconds since 1970, not '" + std::string(epoch) + "'"};
    }
    epoch_micros_ = static_cast<int64_t>(seconds * 1e6);
    given_epoch_ = true;
  }
  return ok_status();
}

Millis SimClock::now() const {
  if (virtual_) return virtual_millis_;
  if (given_epoch_) return std::max<Millis>(0, (wall_now_micros() - epoch_micros_) / 1000);
  return (steady_nanos() - steady_start_nanos_) / 1000000;
}

int64_t SimClock::wall_nanos() const {
  if (virtual_) return wall_micros(virtual_millis_) * 1000;
  if (given_epoch_) return wall_now_micros() * 1000;
  return epoch_micros_ * 1000 + steady_nanos() - steady_start_nanos_;
}

}  // namespace gpuledger::sim
