// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace gpuledger::app {

// The terminal's alternate screen, without echo or line mode. The destructor restores the terminal; a program ended by
// a signal must run it.
class Terminal {
 public:
  Terminal() = default;
  ~Terminal() { leave(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Error: stdin or stdout is no terminal.
  Status enter();
  void leave();

  struct Size {
    size_t columns;
    size_t rows;
  };
  static Size size();
  // Overwrites the screen in one write, to avoid flicker.
  static void show(const std::vector<std::string>& lines);

 private:
  bool entered_ = false;
  termios before_{};
};

}  // namespace gpuledger::app
