// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attribute/state/state.h"
#include "base/result.h"

namespace gpuledger::app {

// Two files in one form. FILE is forced to the disk now and then and survives a machine that loses power. FILE.recent
// is as old as the last cycle that was shown, but only in the system's memory at first: it survives the program,
// however that ends, and is why no counter falls.
std::string recent_state_path(const std::string& path);

struct StateFound {
  attribute::EngineState state;  // empty: nothing to remember
  // One line for each file that could not be used. It was renamed to NAME.broken-<unix time>, or left where that
  // failed.
  std::vector<std::string> warnings;
};

// The younger of the two that can be used. Files that are not there are no news. An error only where there is
// something else than a file, which is left alone.
Result<StateFound> read_state_files(const std::string& path, int64_t unix_time);

}  // namespace gpuledger::app
