// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/top/books.h"
#include "app/top/view.h"

namespace gpuledger::app::top {

// One line of the table: a process, or with View::by_owner all of an owner. An empty optional is unknown.
struct Row {
  std::optional<uint32_t> gpu;  // empty: several
  size_t gpus = 1;
  std::optional<int64_t> pid;  // empty: several processes, or none
  size_t processes = 1;
  bool active = false;
  std::optional<double> watts;  // since the books before, of the GPUs that were measured
  double watts_error = 0;       // one standard error
  std::optional<double> share;
  std::optional<double> memory;
  double joules = 0;
  double joules_error = 0;  // one standard error
  std::optional<double> idle_seconds;
  std::string owner;
  std::string process;
  std::string search;  // lower case, for the filter
};

// before: the books of a time before, for the watts; null: none. Filtered and sorted as the view says. Pure.
std::vector<Row> make_rows(const Books& now, const Books* before, const View& view);

}  // namespace gpuledger::app::top
