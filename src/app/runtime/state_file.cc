// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/state_file.h"

#include <cerrno>
#include <cstdio>
#include <optional>

#include "attribute/state/state_text.h"
#include "base/file.h"

namespace gpuledger::app {
namespace {

// A thousand times what eight full GPUs need: a larger file is not ours.
constexpr size_t kLargestState = 256 << 20;

std::string set_aside(const std::string& path, int64_t unix_time, const std::string& why) {
  const std::string aside = path + ".broken-" + std::to_string(unix_time);
  const bool moved = std::rename(path.c_str(), aside.c_str()) == 0;
  return "the ledger starts without this state: " + why +
         (moved ? "; kept as " + aside : "; " + errno_error("cannot rename", path, errno).message);
}

// Empty: none, or not usable.
Result<std::optional<attribute::EngineState>> read_one(const std::string& path, int64_t unix_time,
                                                       std::vector<std::string>& warnings) {
  using Found = std::optional<attribute::EngineState>;
  const auto text = read_file(path, kLargestState);
  if (!text.ok()) {
    const Error& error = text.error();
    if (error.code == Code::kNotFound) return Found();
    if (error.code != Code::kMalformed) {
      return Error{error.code, error.message + "; its counters would start at 0: make it readable, or remove it"};
    }
    warnings.push_back(set_aside(path, unix_time, error.message));
    return Found();
  }
  auto state = attribute::parse_state(*text);
  if (state.ok()) return Found(std::move(*state));
  warnings.push_back(set_aside(path, unix_time, path + " " + state.error().message));
  return Found();
}

}  // namespace

std::string recent_state_path(const std::string& path) {
  return path + ".recent";
}

Result<StateFound> read_state_files(const std::string& path, int64_t unix_time) {
  for (const std::string& name : {path, recent_state_path(path)}) { GL_TRY_STATUS(check_regular_or_absent(name)); }
  StateFound found;
  GL_TRY(durable, read_one(path, unix_time, found.warnings));
  GL_TRY(recent, read_one(recent_state_path(path), unix_time, found.warnings));
  if (durable) found.state = std::move(*durable);
  if (recent && recent->number >= found.state.number) found.state = std::move(*recent);
  return found;
}

}  // namespace gpuledger::app
