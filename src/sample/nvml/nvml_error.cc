// SPDX-License-Identifier: Apache-2.0
#include "sample/nvml/nvml_error.h"

#include "sample/error_row.h"

namespace gpuledger::nvml {

namespace {

constexpr ErrorRow kRows[] = {
    {kSuccess, Code::kInternal, "success"},
    {kUninitialized, Code::kUnavailable, "not initialised"},
    {kInvalidArgument, Code::kInternal, "invalid argument"},
    {kNotSupported, Code::kNotSupported, "not supported"},
    {kNoPermission, Code::kPermission, "no permission",
     "run as root or let this user open /dev/nvidiactl and /dev/nvidia*"},
    {kNotFound, Code::kNotFound, "not found"},
    {kInsufficientSize, Code::kInternal, "buffer too small"},
    {kDriverNotLoaded, Code::kUnavailable, "driver not loaded",
     "load the kernel module (modprobe nvidia) and see that nvidia-smi works; in a container, that /dev/nvidiactl is "
     "there"},
    {kTimeout, Code::kTimeout, "timeout"},
    {kIrqIssue, Code::kInternal, "interrupt problem", "see dmesg for what the nvidia module says"},
    {kLibraryNotFound, Code::kNotFound, "a library of the driver is missing", "install the whole driver package"},
    {kFunctionNotFound, Code::kNotSupported, "function not found"},
    {kGpuIsLost, Code::kUnavailable, "GPU is lost", "see dmesg for its Xid; it needs a reset or the machine a reboot"},
    {kResetRequired, Code::kUnavailable, "GPU needs a reset", "nvidia-smi --gpu-reset once nothing uses it"},
    {17, Code::kInternal, "the operating system refused", "see dmesg; /dev/nvidia* may be blocked by a cgroup"},
    {kLibRmVersionMismatch, Code::kUnavailable, "library and kernel module are of different versions",
     "reload the nvidia module or reboot after a driver upgrade"},
    {kInUse, Code::kInternal, "in use"},
    {20, Code::kInternal, "out of memory"},
    {kNoData, Code::kNotFound, "no data"},
    {kArgumentVersionMismatch, Code::kNotSupported, "argument version not known to this driver"},
    {kUnknown, Code::kInternal, "unknown error", "see dmesg for what the nvidia module says"},
};

const ErrorRow& row_of(Return result) {
  return error_row(kRows, result);
}

}  // namespace

Code code_of(Return result) {
  return row_of(result).code;
}

std::string describe(const char* symbol, Return result) {
  return describe_error(symbol, row_of(result), "NVML", result);
}

std::string advice_for(Return result) {
  return row_of(result).advice;
}

bool means_driver_gone(Return result) {
  return result == kUninitialized || result == kDriverNotLoaded || result == kLibRmVersionMismatch;
}

bool means_gpu_gone(Return result) {
  return result == kGpuIsLost || result == kResetRequired;
}

bool means_unsupported(Return result) {
  return code_of(result) == Code::kNotSupported;
}

}  // namespace gpuledger::nvml
