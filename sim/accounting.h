// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "scenario.h"

namespace gpuledger::sim {

struct Ticket;
struct Context;

// Statistics per process that the driver keeps while accounting mode is on, also of exited processes.
class AccountingBook {
 public:
  struct Record {
    Millis start = 0;
    Millis end = kForever;  // kForever: still running
    uint64_t max_memory = 0;
    uint64_t samples = 0;
    uint64_t gpu_sum = 0;  // hundredths of a percent
    uint64_t memory_sum = 0;
  };

  static constexpr unsigned kBufferSize = 4000;
  static constexpr size_t kMostDead = 128;

  bool on() const { return on_; }
  void set(bool on);
  void clear() { records_.clear(); }
  void add(const Ticket& ticket, const std::vector<Context>& contexts);
  const std::map<unsigned, Record>& records() const { return records_; }

 private:
  bool on_ = false;
  std::map<unsigned, Record> records_;
};

}  // namespace gpuledger::sim
