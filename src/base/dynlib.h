// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gpuledger {

// A shared library opened at run time; closed by destructor. Empty by default.
class DynLib {
 public:
  DynLib() = default;
  DynLib(DynLib&& other) noexcept;
  DynLib& operator=(DynLib&& other) noexcept;
  ~DynLib();

  static Result<DynLib> open(const std::string& path);

  // nullptr if there is no such symbol.
  void* symbol(const char* name) const;

 private:
  explicit DynLib(void* handle) : handle_(handle) {}
  void* handle_ = nullptr;
};

}  // namespace gpuledger
