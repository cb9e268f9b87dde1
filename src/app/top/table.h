// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/top/books.h"
#include "app/top/text.h"
#include "app/top/view.h"

namespace gpuledger::app::top {

struct Size {
  size_t columns = 120;
  size_t rows = 0;  // 0: as many as there are lines, without bars and keys: for a file or a pipe
};

// Texts about the books as a whole.
struct Situation {
  std::string source;     // whose books
  std::string trouble;    // why they are old; empty: they are fresh
  std::string note = {};  // why they are not a running exporter's books; empty: no note
};

struct Screen {
  std::vector<Line> lines;  // at most the rows of the size, each within its columns
  bool dimmed = false;      // the books are old; lines from `fresh_lines` on
  size_t fresh_lines = 0;
  size_t offset = 0;  // of the view, not beyond the end
  size_t page = 1;    // rows of the table on this screen
};

// The screen of `gpu-ledger top`: the node, its GPUs, then its processes or owners. before: the books of a time before,
// for the watts; null: there are no watts yet. Pure.
Screen write_screen(const Books& now, const Books* before, const View& view, const Situation& situation, Size size);

}  // namespace gpuledger::app::top
