// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "app/top/rows.h"
#include "app/top/text.h"

namespace gpuledger::app::top {

// The columns of the table of processes that fit the screen.
class RowLayout {
 public:
  RowLayout(size_t columns, const View& view);

  Line write_head() const;
  Line write_row(const Row& row) const;

 private:
  const View& view_;
  std::vector<SortBy> numbers_;  // columns before the owner, in their order
  bool errors_ = true;           // the column +/- beside the watts
  bool energy_errors_ = false;   // that beside the energy
  size_t owner_ = 0;
  size_t process_ = 0;  // 0: none
};

}  // namespace gpuledger::app::top
