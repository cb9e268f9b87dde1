// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace gpuledger::app {

// A screen of its own on the terminal, without echo or lines. What was there before comes back with the destructor;
// whoever ends by a signal has to get there first.
class Terminal {
 public:
  Terminal() = default;
  ~Terminal() { leave(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // An error where stdin or stdout is no terminal.
  Status enter();
  void leave();

  struct Size {
    size_t columns;
    size_t rows;
  };
  static Size size();
  // In one write, over what is there: the screen does not flicker.
  static void show(const std::vector<std::string>& lines);

 private:
  bool entered_ = false;
  termios before_{};
};

}  // namespace gpuledger::app
