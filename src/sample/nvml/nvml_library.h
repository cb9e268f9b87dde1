// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/dynlib.h"
#include "base/result.h"
#include "sample/nvml/nvml_abi.h"

namespace gpuledger::nvml {

// A driver function and its name for errors and call times. nullptr: the driver lacks it.
template <typename Signature>
struct Function {
  const char* name;
  Signature* pointer = nullptr;
  explicit operator bool() const { return pointer != nullptr; }
};

struct FunctionTable {
#define NVML_FUNCTION(need, result, symbol, parameters) Function<result parameters> symbol{#symbol};
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION

  std::vector<std::string> missing_required() const;
  std::vector<std::string> missing_optional() const;
};

struct Library {
  DynLib handle;  // the functions need it open
  FunctionTable functions;
};

// Tests use a fake driver here.
using LibraryLoader = std::function<Result<Library>()>;

inline constexpr const char* kDefaultLibrary = "libnvidia-ml.so.1";

// path: empty for kDefaultLibrary from the dynamic loader. The error says what to do.
Result<Library> load_library(const std::string& path);

}  // namespace gpuledger::nvml
