// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/dynlib.h"
#include "base/result.h"
#include "sample/dcgm/dcgm_abi.h"

namespace gpuledger::dcgm {

struct FunctionTable {
#define DCGM_FUNCTION(symbol, parameters) Return(*symbol) parameters = nullptr;
#include "sample/dcgm/dcgm_functions.inc"
#undef DCGM_FUNCTION
};

// libdcgm, initialized. Loaded once and kept: it starts its own threads, so it is not unloaded and loaded again at
// every reconnect. Shared with the thread that calls it, which may hang in it.
struct Library {
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  DynLib handle;  // the functions need it open
  FunctionTable functions;
  std::string version;  // "4.6.0"
  bool initialised = false;
};

// path: empty for libdcgm.so.4, else libdcgm.so.3, from the dynamic loader. A library that is not DCGM 3 or 4 is
// refused. The error is one line that says what to do.
Result<std::shared_ptr<Library>> load_library(const std::string& path);

// "version:4.6.0;arch:..." -> "4.6.0"; empty if missing.
std::string parse_version(const VersionInfo& info);

}  // namespace gpuledger::dcgm
