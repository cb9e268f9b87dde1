// SPDX-License-Identifier: Apache-2.0
// A process chooses its own name, which stands in the middle of /proc/<pid>/stat, and its own title.

#include <cstdint>
#include <string>

#include "identity/proc_reader.h"
#include "invariant.h"

namespace {

using gpuledger::fuzz::require;

void check(std::string_view text) {
  using namespace gpuledger::identity;
  const std::string stat = "1 (" + std::string(text) + ") S 1 2 3 0 -1 4194560 1 0 0 0 7 8 0 0 20 0 5 0 77 100\n";
  const auto ticks = parse_start_ticks(stat);
  require(ticks.ok() && *ticks == 77, "a name moves the start time");
  (void)parse_start_ticks(text);
  (void)parse_boot_time(text);
  (void)parse_slurmstepd_title(text);
  const std::string name = clean_name(text);
  require(!name.empty() && name.size() <= 64, "a name is short");
  require(clean_name(name) == name, "a clean name stays as it is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  check({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
