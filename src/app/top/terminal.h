// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <string>

#include "app/top/table.h"
#include "base/result.h"

namespace gpuledger::app::top {

// The terminal's alternate screen, without echo or line mode. The destructor restores the terminal; a program ended by
// a signal must run it.
class Terminal {
 public:
  Terminal() = default;
  ~Terminal() { leave(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Whether a live table can be shown: stdin and stdout are terminals that can move the cursor.
  static Status check();
  // Also after another program used the terminal.
  Status enter();
  void leave();

  static Size size();
  // False for NO_COLOR, and where stdout is no terminal or a dumb one.
  static bool has_colours();
  // The bytes that overwrite the screen.
  static std::string picture(const Screen& screen, bool colours);
  // In one write, to avoid flicker.
  void show(const Screen& screen);

 private:
  bool entered_ = false;
  bool saved_ = false;
  termios before_{};
};

}  // namespace gpuledger::app::top
