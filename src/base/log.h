// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/mutex.h"
#include "base/result.h"

namespace gpuledger {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Keys are from our own code; values may hold anything.
struct LogField {
  template <typename T>
  requires std::is_convertible_v<const T&, std::string_view> LogField(std::string_view k, const T& v)
      : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), bare(true) {}
  template <typename T>
  requires std::is_arithmetic_v<T> LogField(std::string_view k, T v) : key(k), value(std::to_string(v)), bare(true) {}

  std::string_view key;
  std::string value;
  bool bare = false;  // a number or a bool: without quotes in JSON
};
using LogFields = std::initializer_list<LogField>;

// Lines go to stderr, one write each, from any thread.
//   text: ts=2026-01-31T12:00:00.000Z level=info msg="listening" address=:9400
//   json: {"ts":"2026-01-31T12:00:00.000Z","level":"info","msg":"listening","address":":9400"}
// level: debug, info, warn, error; format: text, json. Anything else changes nothing and is an error.
// May be called again at any time, for SIGHUP. Before the first call: info, text.
Status configure_log(std::string_view level, std::string_view format);

void log_line(LogLevel level, std::string_view message, LogFields fields = {});
inline void log_debug(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::kDebug, message, fields);
}
inline void log_info(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::kInfo, message, fields);
}
inline void log_warn(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::kWarn, message, fields);
}
inline void log_error(std::string_view message, LogFields fields = {}) {
  log_line(LogLevel::kError, message, fields);
}

// From now on a failed allocation writes one line and ends the program with this code. It could not go on: every stage
// allocates, and an exception on a thread ends it silently.
void end_when_out_of_memory(int exit_code);

// Logs a state when it changes, not in every cycle. Keeps a few short strings per name forever, so names are things of
// the machine (a GPU, a socket), never pids. Any thread.
class StateLog {
 public:
  // Returns true and writes one line with the fields `name` and `state` if the state has changed, or if it has not and
  // the message is new: a source may stay down for another reason. While the state lasts each message is written once,
  // whatever numbers are in it, and only the first few: reasons that alternate or never repeat do not fill the log. The
  // first call for a name always writes.
  bool update(const std::string& name, std::string_view state, std::string_view message,
              LogLevel level = LogLevel::kInfo);

 private:
  struct Said {
    std::string state;
    std::set<std::string> messages;  // without their numbers
  };

  Mutex mutex_;
  std::map<std::string, Said> states_ GL_GUARDED_BY(mutex_);
};

}  // namespace gpuledger
