// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::app::top {

enum class KeyKind {
  kCharacter,
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kTab,
  kEnter,
  kEscape,
  kBackspace,
};

struct Key {
  KeyKind kind = KeyKind::kCharacter;
  char byte = 0;  // of kCharacter: printable ASCII, or one byte of a longer character
};

// The bytes of a terminal as keys. An escape sequence may come in two pieces.
class KeyReader {
 public:
  std::vector<Key> take(std::string_view bytes);
  // Nothing followed: the escape key itself.
  std::vector<Key> flush();
  bool waits() const { return !pending_.empty(); }

 private:
  std::string pending_;
};

}  // namespace gpuledger::app::top
