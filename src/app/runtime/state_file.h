// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribute/state/state.h"
#include "base/result.h"

namespace gpuledger::app {

// Two files in one format. FILE is synced to disk now and then and survives a power loss. FILE.recent is written in
// every cycle before the books are shown, but not synced: it survives any end of the program, so that no counter falls.
std::string recent_state_path(const std::string& path);

struct StateFound {
  attribute::EngineState state;  // empty: no state
  // One line per unusable file. It was renamed to NAME.broken-<unix time>, or left in place if that failed.
  std::vector<std::string> warnings;
};

// The newer usable one of the two. Missing files are normal. An error if the path is not a file or cannot be read (a
// failing disk, rights, open files); it is left alone, because the state in it may be good.
Result<StateFound> read_state_files(const std::string& path, int64_t unix_time);

}  // namespace gpuledger::app
