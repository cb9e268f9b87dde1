// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/bill/allocation_filter.h"
#include "app/bill/statement.h"
#include "base/result.h"

namespace gpuledger::app {

enum class AllocationForm {
  kFull,
  kSummary,  // few fields
  kNames,    // only the names of groups, for those who type one
};

// What a request to the allocation API asks for.
struct AllocationQuestion {
  std::vector<BillSpan> spans;  // one set of allocations for each; all are over
  std::string by;               // what the bill is grouped by, several by a comma
  bool in_one = false;          // aggregate=all: one allocation for all owners
  bool include_idle = false;
  Spread spread = Spread::kKeep;                   // shareIdle=true: by use
  std::shared_ptr<const AllocationFilter> filter;  // null: everybody's
  std::string filter_text;
  AllocationForm form = AllocationForm::kFull;
  std::string search;       // of kNames: what a name must contain, in upper or lower case
  size_t most_names = 100;  // as OpenCost

  // The same for all requests that get the same answer.
  std::string key() const;
};

// `query`: the part of the target after "?". No span ends after newest_end, so that those who ask within a minute ask
// the same. The message of an error names the parameter and what it may be.
Result<AllocationQuestion> parse_allocation_question(std::string_view query, std::chrono::sys_seconds now,
                                                     AllocationForm form = AllocationForm::kFull);

}  // namespace gpuledger::app
