// SPDX-License-Identifier: Apache-2.0
#include "base/dynlib.h"

#include <dlfcn.h>

namespace gpuledger {

DynLib::DynLib(DynLib&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

DynLib& DynLib::operator=(DynLib&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

DynLib::~DynLib() {
  if (handle_) dlclose(handle_);
}

Result<DynLib> DynLib::open(const std::string& path) {
  // RTLD_NOW: a library with missing symbols fails here, with a name, and not during a sample.
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return DynLib(handle);
  const char* why = dlerror();
  return Error{Code::kNotFound, why ? why : path + ": cannot be loaded"};
}

void* DynLib::symbol(const char* name) const {
  return handle_ ? dlsym(handle_, name) : nullptr;
}

}  // namespace gpuledger
