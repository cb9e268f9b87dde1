// SPDX-License-Identifier: Apache-2.0
#include "app/top/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace gpuledger::app::top {
namespace {

// Errors only end the writing: a closed terminal cannot show them.
void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool is_dumb() {
  const char* const term = std::getenv("TERM");
  return term != nullptr && std::string_view(term) == "dumb";
}

}  // namespace

Status Terminal::check() {
  if (!::isatty(STDIN_FILENO) || !::isatty(STDOUT_FILENO))
    return Error{Code::kNotSupported, "top needs a terminal; gpu-ledger top --batch prints the table once"};
  if (is_dumb())
    return Error{
        Code::kNotSupported,
        "top needs a terminal that can move the cursor, this one says TERM=dumb; gpu-ledger top --batch prints "
        "the table once"};
  return ok_status();
}

Status Terminal::enter() {
  termios now{};
  if (::tcgetattr(STDIN_FILENO, &now) != 0)
    return Error{Code::kInternal, std::string("tcgetattr: ") + std::strerror(errno)};
  if (!saved_) before_ = now;
  saved_ = true;
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0)
    return Error{Code::kInternal, std::string("tcsetattr: ") + std::strerror(errno)};
  entered_ = true;
  write_all("\x1b[?1049h\x1b[?25l\x1b[?7l");  // alternate screen, no cursor, no wrapping
  return ok_status();
}

void Terminal::leave() {
  if (!entered_) return;
  entered_ = false;
  write_all("\x1b[?7h\x1b[?25h\x1b[?1049l");
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

Size Terminal::size() {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) return {80, 24};
  return {window.ws_col, window.ws_row};
}

bool Terminal::has_colours() {
  const char* const no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && ::isatty(STDOUT_FILENO) && !is_dumb();
}

std::string Terminal::picture(const Screen& screen, bool colours) {
  std::string text = "\x1b[H";
  for (size_t i = 0; i < screen.lines.size(); ++i) {
    if (i > 0) text += "\r\n";
    // Erased before it is written: after a line that fills the width the cursor stands on the last character.
    text += i + 1 < screen.lines.size() ? "\x1b[K" : "\x1b[J";
    text += write_line(screen.lines[i], colours, screen.dimmed && i >= screen.fresh_lines);
  }
  return text;
}

void Terminal::show(const Screen& screen) {
  write_all(picture(screen, has_colours()));
}

}  // namespace gpuledger::app::top
