// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_library.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "sample/dcgm/dcgm_error.h"

namespace gpuledger::dcgm {

namespace {

constexpr const char* kNames[] = {"libdcgm.so.4", "libdcgm.so.3"};
constexpr const char* kAdvice = "check --dcgm-library, or install DCGM 4 or 3";

Result<DynLib> open_any(const std::string& path, std::string& name) {
  if (!path.empty()) {
    name = path;
    return DynLib::open(path);
  }
  Error last;
  for (const char* candidate : kNames) {
    Result<DynLib> handle = DynLib::open(candidate);
    if (handle.ok()) {
      name = candidate;
      return handle;
    }
    last.message += (last.message.empty() ? "" : "; ") + handle.error().message;
  }
  last.code = Code::kNotFound;
  return last;
}

std::string find_functions(Library& library) {
  std::string missing;
#define DCGM_FUNCTION(name, parameters)                                                                      \
  library.functions.name = reinterpret_cast<decltype(library.functions.name)>(library.handle.symbol(#name)); \
  if (library.functions.name == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(#name);
#include "sample/dcgm/dcgm_functions.inc"
#undef DCGM_FUNCTION
  return missing;
}

}  // namespace

Library::~Library() {
  if (initialised) functions.dcgmShutdown();
}

std::string parse_version(const VersionInfo& info) {
  const std::string_view text(info.text, strnlen(info.text, sizeof info.text));
  constexpr std::string_view kWord = "version:";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    const std::string_view part = text.substr(at, end - at);
    if (part.starts_with(kWord)) return std::string(part.substr(kWord.size()));
    at = end + 1;
  }
  return {};
}

Result<std::shared_ptr<Library>> load_library(const std::string& path) {
  std::string name;
  Result<DynLib> handle = open_any(path, name);
  if (!handle.ok()) {
    return Error{Code::kNotFound, "cannot load DCGM's library (" + handle.error().message +
                                      "): install DCGM (datacenter-gpu-manager) or name it with --dcgm-library"};
  }
  auto library = std::make_shared<Library>();
  library->handle = std::move(*handle);
  if (const std::string missing = find_functions(*library); !missing.empty()) {
    return Error{Code::kMalformed, name + " lacks " + missing + ": it is not DCGM 3 or 4; " + kAdvice};
  }
  if (const Return result = library->functions.dcgmInit(); result != kOk) {
    return Error{code_of(result), name + ": " + describe("dcgmInit", result)};
  }
  library->initialised = true;
  VersionInfo info{};
  info.version = kVersionInfoVersion;
  if (const Return result = library->functions.dcgmVersionInfo(&info); result != kOk) {
    return Error{Code::kMalformed, name + ": " + describe("dcgmVersionInfo", result) + "; " + kAdvice};
  }
  library->version = parse_version(info);
  if (!library->version.starts_with("3.") && !library->version.starts_with("4.")) {
    return Error{Code::kNotSupported,
                 name + " is DCGM " + (library->version.empty() ? "of no version" : library->version) +
                     ", of which the layout is not known: versions 3 and 4 can be used; " + kAdvice};
  }
  return library;
}

}  // namespace gpuledger::dcgm
