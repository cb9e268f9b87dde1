// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "model/sample.h"
#include "sample/nvml/nvml_error.h"
#include "sample/nvml/nvml_library.h"

namespace gpuledger::nvml {

inline constexpr unsigned kMostPid = 1u << 22;  // the kernel's limit

// All driver calls go through here: counts their time and notes when the driver is lost. For one thread: every GPU's
// thread has one, and the source merges their counts. Lives as long as the source, across reopens of the library.
class Calls {
 public:
  explicit Calls(const Clock& clock) : clock_(clock) {}

  template <typename... Parameters, typename... Arguments>
  Return operator()(const Function<Return(Parameters...)>& function, Arguments... arguments) {
    if (!function) return kFunctionNotFound;
    const Nanoseconds begin = clock_.now().steady;
    const Return result = function.pointer(arguments...);
    finish(function.name, clock_.now().steady - begin, result);
    return result;
  }

  Timestamp now() const { return clock_.now(); }

  // Only the caller knows what is a failure (NOT_FOUND may mean idle), so the caller counts failures.
  void count_failure(Return result) { ++errors_[code_name(code_of(result))]; }
  void count_failure(const char* kind) { ++errors_[kind]; }
  const std::map<std::string, uint64_t>& errors() const { return errors_; }
  const std::map<std::string, DurationHistogram>& durations() const { return durations_; }

  // Set by the first call that says so, until reset.
  bool driver_gone() const { return !driver_gone_.empty(); }
  const std::string& driver_gone_reason() const { return driver_gone_; }
  void forget_driver_gone() { driver_gone_.clear(); }

  // Moves all counts from the other one.
  void absorb(Calls& other);

 private:
  void finish(const char* symbol, Nanoseconds took, Return result);

  const Clock& clock_;
  std::map<std::string, uint64_t> errors_;
  std::map<std::string, DurationHistogram> durations_;
  std::string driver_gone_;
};

// An initialized driver, for the readers below the source.
struct Session {
  const FunctionTable& fn;
  Calls& call;
};

}  // namespace gpuledger::nvml
