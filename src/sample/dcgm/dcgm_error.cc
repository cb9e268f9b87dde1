// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_error.h"

#include <algorithm>
#include <iterator>

namespace gpuledger::dcgm {

namespace {

struct Row {
  Return value;
  Code code;
  const char* text;
};

// Own texts instead of errorString: that one is missing if loading the library failed.
constexpr Row kRows[] = {
    {kOk, Code::kInternal, "success"},
    {kBadParameter, Code::kInternal, "bad parameter"},
    {kNotSupported, Code::kNotSupported, "not supported"},
    {kNvmlError, Code::kUnavailable, "the driver failed"},
    {kUninitialized, Code::kUnavailable, "not initialised"},
    {kTimeout, Code::kTimeout, "timeout"},
    {kVersionMismatch, Code::kNotSupported, "version of a structure not known"},
    {kUnknownField, Code::kNotSupported, "unknown field"},
    {kNoData, Code::kNotFound, "no data"},
    {kStaleData, Code::kUnavailable, "only old data"},
    {kNotWatched, Code::kUnavailable, "not watched"},
    {kNoPermission, Code::kPermission, "no permission"},
    {kGpuIsLost, Code::kUnavailable, "GPU is lost"},
    {kFunctionNotFound, Code::kNotSupported, "the engine is too old for this call"},
    {kConnectionNotValid, Code::kUnavailable, "no connection to the engine"},
    {kRequiresRoot, Code::kPermission, "the engine is not root"},
    {kInsufficientSize, Code::kInternal, "buffer too small"},
    {kModuleNotLoaded, Code::kNotSupported, "a module of the engine is missing"},
    {kGroupIsEmpty, Code::kNotFound, "group is empty"},
    {kProfilingNotSupported, Code::kNotSupported, "profiling is not supported"},
    {kProfilingLibraryError, Code::kUnavailable, "profiling failed"},
    {kProfilingMultiPass, Code::kNotSupported, "these fields cannot be profiled together"},
    {kPaused, Code::kUnavailable, "the engine is paused"},
    {kNvmlNotLoaded, Code::kUnavailable, "the engine has no driver"},
    {kNvmlDriverTimeout, Code::kTimeout, "the driver does not answer the engine"},
};

const Row& row_of(Return result) {
  // Newer engines have more codes; all of them mean that there is no data.
  static constexpr Row kOther = {kOk, Code::kInternal, "an error this program has no name for"};
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.value == result; });
  return row == std::end(kRows) ? kOther : *row;
}

}  // namespace

Code code_of(Return result) {
  return row_of(result).code;
}

std::string describe(const char* symbol, Return result) {
  return std::string(symbol) + ": " + row_of(result).text + " (DCGM " + std::to_string(static_cast<int>(result)) + ")";
}

bool means_engine_gone(Return result) {
  return result == kConnectionNotValid || result == kUninitialized;
}

bool means_unsupported(Return result) {
  return code_of(result) == Code::kNotSupported;
}

}  // namespace gpuledger::dcgm
