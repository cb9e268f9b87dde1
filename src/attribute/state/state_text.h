// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "attribute/state/state.h"
#include "base/result.h"

namespace gpuledger::attribute {

// The state as text: a first line with version, checksum and length, then JSON with energies in integer microjoules.
//   gpu-ledger-state 3 crc32:9a3f0c11 18734
// Bytes of names are written as code points 0 to 255, so that names that are not UTF-8 stay unchanged.
std::string write_state(const EngineState& state);

// A text that is cut, altered, of another program or of a newer version is an error, and so are books that do not
// balance. Unknown fields are ignored.
Result<EngineState> parse_state(std::string_view text);

// For both directions.
inline constexpr std::string_view kStateMagic = "gpu-ledger-state ";
inline constexpr int kStateVersion = 3;
std::string state_header(std::string_view body, int version = kStateVersion);

}  // namespace gpuledger::attribute
