// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/bill/statement.h"

namespace gpuledger::app {

struct AllocationShape {
  bool include_idle = false;
  bool in_one = false;   // all owners together, under "all"
  bool summary = false;  // the shape and the fields of OpenCost's summary
};

// Statements in the shape of OpenCost's answer: {"code":200,"data":[{NAME:{...},...},...]}, one object per statement.
// Unattributed energy is __idle__, owners without a group are __unallocated__. Lines of kLeftOut are not in it. A
// statement that is not complete, and a property that was asked for and is in no statement, give a "warning"; remarks
// are "notes".
std::string allocation_json(const std::vector<Statement>& statements, const AllocationShape& shape);

// The names of groups in which `search` is, without regard to case: {"code":200,"data":{"data":["a","b"]}}.
std::string names_json(const std::vector<Statement>& statements, std::string_view search, size_t most);

// {"code":400,"message":"..."}
std::string allocation_error(unsigned code, std::string_view message);

}  // namespace gpuledger::app
