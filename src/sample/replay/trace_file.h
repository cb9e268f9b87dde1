// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct gzFile_s;

namespace gpuledger::replay {

// A recording written as a temporary file and renamed when complete; without commit() nothing remains. Gzipped if the
// name ends in .gz. Only for its owner: it names the processes of all users.
class TraceFile {
 public:
  static Result<TraceFile> create(const std::string& path);
  TraceFile(TraceFile&& other) noexcept;
  TraceFile& operator=(TraceFile&&) = delete;
  ~TraceFile();

  Status append(std::string_view lines);
  Status commit();

 private:
  TraceFile(std::string path, std::string temporary, gzFile_s* file);

  std::string path_;
  std::string temporary_;
  gzFile_s* file_;  // nullptr: closed
};

}  // namespace gpuledger::replay
