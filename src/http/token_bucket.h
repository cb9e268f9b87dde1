// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "http/web_config.h"

namespace gpuledger::http {

// burst requests at once, then one per interval. One thread.
class TokenBucket {
 public:
  explicit TokenBucket(RateLimit limit) : limit_(limit), tokens_(limit.burst) {}

  bool take(Nanoseconds now) {
    if (limit_.interval.count() <= 0) return true;
    if (last_.count() != 0)
      tokens_ += static_cast<double>((now - last_).count()) / static_cast<double>(limit_.interval.count());
    last_ = now;
    tokens_ = std::min(tokens_, static_cast<double>(limit_.burst));
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  RateLimit limit_;
  double tokens_;
  Nanoseconds last_{0};
};

}  // namespace gpuledger::http
