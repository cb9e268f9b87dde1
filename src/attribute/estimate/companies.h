// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "attribute/estimate/timeline.h"

namespace gpuledger::attribute {

struct Window;

// Processes on the GPU together, with the usual share of its time of each, by the driver's samples.
struct Company {
  struct Share {
    double mean = 0;
    double variance = 0;
  };
  std::vector<Share> shares() const;

  std::vector<uint64_t> accounts;
  bool mps = false;
  std::vector<double> facts;  // of each: independent samples that name it, with decay
  double at = 0;              // end of its last window
};

class Companies {
 public:
  explicit Companies(const Constants& constants) : constants_(constants) {}

  std::shared_ptr<Company> of(const WindowInput& input);
  // Samples are not independent: the driver samples at a fixed rate and can hit the same process for seconds.
  void add_samples(const Window& window) const;

 private:
  const Constants constants_;
  std::map<std::vector<uint64_t>, std::weak_ptr<Company>> companies_;  // by accounts; under MPS with a 0 behind them
};

}  // namespace gpuledger::attribute
