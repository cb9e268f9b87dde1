// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_library.h"

namespace gpuledger::nvml {

namespace {

enum class Need { kRequired, kOptional };

std::vector<std::string> missing(const FunctionTable& table, Need wanted) {
  std::vector<std::string> names;
#define NVML_FUNCTION(need, result, symbol, parameters) \
  if (Need::need == wanted && !table.symbol) names.push_back(#symbol);
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION
  return names;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::vector<std::string> FunctionTable::missing_required() const {
  return missing(*this, Need::kRequired);
}

std::vector<std::string> FunctionTable::missing_optional() const {
  return missing(*this, Need::kOptional);
}

Result<Library> load_library(const std::string& path) {
  const std::string name = path.empty() ? kDefaultLibrary : path;
  Result<DynLib> handle = DynLib::open(name);
  if (!handle.ok()) {
    return Error{Code::kNotFound, "cannot load the NVIDIA library (" + handle.error().message +
                                      "): install the NVIDIA driver, in a container use the nvidia runtime, or name "
                                      "the library with --nvml-library"};
  }
  Library library;
  library.handle = std::move(*handle);
#define NVML_FUNCTION(need, result, function, parameters) \
  library.functions.function.pointer =                    \
      reinterpret_cast<decltype(library.functions.function.pointer)>(library.handle.symbol(#function));
#include "sample/nvml/nvml_functions.inc"
#undef NVML_FUNCTION
  const std::vector<std::string> holes = library.functions.missing_required();
  if (!holes.empty()) {
    return Error{Code::kMalformed, name + " lacks " + join(holes) +
                                       ": it is not an NVML library or far too old; check --nvml-library or update the "
                                       "NVIDIA driver"};
  }
  return library;
}

}  // namespace gpuledger::nvml
