// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"

struct z_stream_s;

namespace gpuledger::net {

// Decompresses gzip in small pieces as it comes, so that the caller can stop a bomb.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // take: false stops without an error.
  Status feed(std::string_view packed, const std::function<bool(std::string_view)>& take);
  bool complete() const { return complete_; }

 private:
  z_stream_s* stream_;
  bool complete_ = false;
};

}  // namespace gpuledger::net
