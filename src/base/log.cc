// SPDX-License-Identifier: Apache-2.0
// Must be before spdlog's headers: its own name for warn is "warning".
#define SPDLOG_LEVEL_NAMES \
  { "trace", "debug", "info", "warn", "error", "critical", "off" }
#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <optional>

#include "base/quote.h"

namespace gpuledger {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::unique_ptr<spdlog::logger> make_logger(const char* pattern) {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sink->set_formatter(
      std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc, std::string("\n")));
  return std::make_unique<spdlog::logger>("gpu-ledger", std::move(sink));
}

// Two loggers and a switch between them: changing the pattern of one that other threads use could mix the two formats
// in a line. They share spdlog's mutex for stderr. Never destroyed: threads may still log while static objects are
// destroyed.
struct Loggers {
  const std::unique_ptr<spdlog::logger> text = make_logger("ts=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v");
  const std::unique_ptr<spdlog::logger> json = make_logger(R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})");
  std::atomic<spdlog::logger*> active{text.get()};
};

Loggers& loggers() {
  static Loggers* const instance = new Loggers;
  return *instance;
}

bool needs_quotes(std::string_view text) {
  constexpr std::string_view kPlain = "_-./:@%+,";
  return text.empty() || !std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return c < 0x80 && (std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != std::string_view::npos);
         });
}

std::string text_payload(std::string_view message, LogFields fields) {
  std::string line = "msg=";
  append_quoted(line, message);
  for (const LogField& field : fields) {
    line.append(" ").append(field.key).append("=");
    if (needs_quotes(field.value)) {
      append_quoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line;
}

std::string json_payload(std::string_view message, LogFields fields) {
  std::string line = "\"msg\":";
  append_quoted(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_quoted(line, field.key);
    line += ':';
    // to_string writes "nan" and "inf": not JSON.
    const bool bare =
        field.bare && field.value.find("nan") == std::string::npos && field.value.find("inf") == std::string::npos;
    if (bare) {
      line += field.value;
    } else {
      append_quoted(line, field.value);
    }
  }
  return line;
}

// Messages logged while one state lasts.
constexpr size_t kMostMessages = 8;

std::string without_numbers(std::string_view message) {
  std::string text;
  for (const char c : message) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) text += c;
  }
  return text;
}

std::atomic<int> exit_code_without_memory{1};

// Allocates nothing.
[[noreturn]] void say_out_of_memory_and_end() {
  static std::atomic_flag said;
  if (!said.test_and_set()) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    tm parts{};
    ::gmtime_r(&now.tv_sec, &parts);
    char time[32] = "", line[160] = "";
    std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &parts);
    const char* const form = loggers().active == loggers().json.get()
                                 ? "{\"ts\":\"%s.%03dZ\",\"level\":\"error\",\"msg\":\"out of memory; ending\"}\n"
                                 : "ts=%s.%03dZ level=error msg=\"out of memory; ending\"\n";
    const int size = std::snprintf(line, sizeof line, form, time, static_cast<int>(now.tv_nsec / 1'000'000));
    if (size > 0) (void)!::write(STDERR_FILENO, line, static_cast<size_t>(size));
    std::_Exit(exit_code_without_memory);
  }
  for (;;) ::pause();  // another thread reports it
}

}  // namespace

void end_when_out_of_memory(int exit_code) {
  (void)loggers();  // made while there is memory
  exit_code_without_memory = exit_code;
  std::set_new_handler(say_out_of_memory_and_end);
}

Status configure_log(std::string_view level, std::string_view format) {
  std::optional<LogLevel> wanted;
  if (level == "debug") wanted = LogLevel::kDebug;
  if (level == "info") wanted = LogLevel::kInfo;
  if (level == "warn") wanted = LogLevel::kWarn;
  if (level == "error") wanted = LogLevel::kError;
  if (!wanted) return Error{Code::kMalformed, "no log level " + in_quotes(level) + " (debug, info, warn or error)"};
  if (format != "text" && format != "json") {
    return Error{Code::kMalformed, "no log format " + in_quotes(format) + " (text or json)"};
  }
  Loggers& all = loggers();
  all.text->set_level(spdlog_level(*wanted));
  all.json->set_level(spdlog_level(*wanted));
  all.active = format == "json" ? all.json.get() : all.text.get();
  return ok_status();
}

void log_line(LogLevel level, std::string_view message, LogFields fields) {
  Loggers& all = loggers();
  spdlog::logger* const logger = all.active;
  if (!logger->should_log(spdlog_level(level))) return;
  const std::string payload = logger == all.json.get() ? json_payload(message, fields) : text_payload(message, fields);
  logger->log(spdlog_level(level), spdlog::string_view_t(payload));
}

bool StateLog::update(const std::string& name, std::string_view state, std::string_view message, LogLevel level) {
  {
    MutexLock lock(mutex_);
    Said& said = states_[name];
    if (said.state != state) said = {std::string(state), {}};
    if (said.messages.size() >= kMostMessages || !said.messages.insert(without_numbers(message)).second) return false;
  }
  log_line(level, message, {{"name", name}, {"state", state}});
  return true;
}

}  // namespace gpuledger
