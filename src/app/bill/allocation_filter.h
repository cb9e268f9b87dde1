// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuledger::app {

// What questions to the allocation API may name, beside the labels of pods. All are words of --by.
inline constexpr std::array<std::string_view, 6> kAllocationProperties = {"cluster", "node", "namespace",
                                                                          "pod",     "user", "slurm_account"};
// Whether it may be the name of a label in Kubernetes.
bool is_label_name(std::string_view name);

// The name of the lines that a filter leaves out. No owner has it.
inline constexpr std::string_view kLeftOut = "those that the filter leaves out";

// Whose energy an answer has: the second version of OpenCost's filter language.
struct AllocationFilter {
  enum class Kind { kAll, kAny, kIs, kContains, kBegins, kEnds };
  // The value of a property, empty if there is none.
  using ValueOf = std::function<std::string(const std::string& property)>;

  Kind kind = Kind::kAll;
  std::vector<AllocationFilter> parts;  // of kAll and kAny; the others compare
  std::string property;                 // a word of --by
  std::vector<std::string> values;      // one of them, or with `negated` none
  bool negated = false;

  bool matches(const ValueOf& value_of) const;
  void add_properties_to(std::set<std::string>& all) const;
};

// The message of an error begins with "filter: ".
Result<AllocationFilter> parse_allocation_filter(std::string_view text);

}  // namespace gpuledger::app
