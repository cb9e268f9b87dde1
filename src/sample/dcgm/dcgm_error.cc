// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_error.h"

#include "sample/error_row.h"

namespace gpuledger::dcgm {

namespace {

constexpr ErrorRow kRows[] = {
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

const ErrorRow& row_of(Return result) {
  return error_row(kRows, result);
}

}  // namespace

Code code_of(Return result) {
  return row_of(result).code;
}

std::string describe(const char* symbol, Return result) {
  return describe_error(symbol, row_of(result), "DCGM", result);
}

bool means_engine_gone(Return result) {
  return result == kConnectionNotValid || result == kUninitialized;
}

bool means_unsupported(Return result) {
  return code_of(result) == Code::kNotSupported;
}

}  // namespace gpuledger::dcgm
