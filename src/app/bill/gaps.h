// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/bill/bill_books.h"
#include "app/bill/bill_query.h"

namespace gpuledger::app {

// Says that a node lacks a time, in milliseconds. False: it is too short for that, and deserves a remark at the most.
bool add_gap(const BillQuery& query, BillBooks& books, const std::string& node, int64_t from, int64_t to,
             const std::string& why);

// Times that nodes and GPUs lack. Short ones are remarks, one for a node and a reason, unless they add up.
class BillLacks {
 public:
  explicit BillLacks(const BillQuery& query) : query_(query) {}

  void add(const std::string& name, int64_t from, int64_t to, const std::string& why);
  // After the last one.
  void name(BillBooks& books) const;

 private:
  struct Short {
    int64_t count = 0;
    int64_t sum_ms = 0;
    int64_t first_ms = 0;
    int64_t last_ms = 0;
  };
  const BillQuery& query_;
  std::vector<BillGap> gaps_;
  std::map<std::string, std::map<std::string, Short>> short_;  // by name and reason
};

}  // namespace gpuledger::app
