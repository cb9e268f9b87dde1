// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"

struct z_stream_s;

namespace gpuledger::net {

// Unpacks gzip as it comes, in small pieces, so that whoever takes them can stop a bomb.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // take: false ends it, without an error.
  Status feed(std::string_view packed, const std::function<bool(std::string_view)>& take);
  bool complete() const { return complete_; }

 private:
  z_stream_s* stream_;
  bool complete_ = false;
};

}  // namespace gpuledger::net
