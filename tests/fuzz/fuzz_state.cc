// SPDX-License-Identifier: Apache-2.0
// What must hold of a state file whatever is in it: refused, or read into what is written and read as the same again.
// The checksum is made to fit, for a random one would let nothing through.

#include <cstdint>
#include <string>

#include "attribute/state/state_text.h"
#include "invariant.h"

using namespace gpuledger::attribute;
using gpuledger::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string body(reinterpret_cast<const char*>(bytes), size);
  require(!parse_state(body).ok() || body.starts_with(kStateMagic), "a body is no state");
  const auto state = parse_state(state_header(body) + body);
  if (!state) return 0;
  const std::string written = write_state(*state);
  const auto again = parse_state(written);
  require(again.ok(), "what was read can be kept");
  require(write_state(*again) == written, "and is the same again");
  return 0;
}
