// SPDX-License-Identifier: Apache-2.0
#include "app/top/keys.h"

#include <optional>
#include <utility>

namespace gpuledger::app::top {
namespace {

constexpr char kEscapeByte = '\x1b';
constexpr size_t kLongestSequence = 16;

constexpr std::pair<std::string_view, KeyKind> kSequences[] = {
    {"[A", KeyKind::kUp},      {"OA", KeyKind::kUp},        {"[B", KeyKind::kDown}, {"OB", KeyKind::kDown},
    {"[5~", KeyKind::kPageUp}, {"[6~", KeyKind::kPageDown}, {"[H", KeyKind::kHome}, {"OH", KeyKind::kHome},
    {"[1~", KeyKind::kHome},   {"[7~", KeyKind::kHome},     {"[F", KeyKind::kEnd},  {"OF", KeyKind::kEnd},
    {"[4~", KeyKind::kEnd},    {"[8~", KeyKind::kEnd},
};

// The length of the sequence after the escape byte; 0: not whole yet; empty: none begins so.
std::optional<size_t> sequence_length(std::string_view rest) {
  if (rest.empty()) return 0;
  if (rest[0] == 'O') return rest.size() < 2 ? 0 : 2;
  if (rest[0] != '[') return std::nullopt;
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] >= '@' && rest[i] <= '~') return i + 1;
    if (rest[i] < ' ' || i > kLongestSequence) return std::nullopt;
  }
  return 0;
}

std::optional<Key> plain_key(char byte) {
  if (byte == '\r' || byte == '\n') return Key{KeyKind::kEnter, 0};
  if (byte == '\t') return Key{KeyKind::kTab, 0};
  if (byte == '\x7f' || byte == '\b') return Key{KeyKind::kBackspace, 0};
  if (static_cast<unsigned char>(byte) < 0x20) return std::nullopt;
  return Key{KeyKind::kCharacter, byte};
}

}  // namespace

std::vector<Key> KeyReader::take(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> keys;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    if (rest[0] != kEscapeByte) {
      if (const auto key = plain_key(rest[0])) keys.push_back(*key);
      rest.remove_prefix(1);
      continue;
    }
    const auto length = sequence_length(rest.substr(1));
    if (length == size_t{0}) break;
    if (!length) {
      keys.push_back({KeyKind::kEscape, 0});
      rest.remove_prefix(1);
      continue;
    }
    for (const auto& [sequence, kind] : kSequences) {
      if (rest.substr(1, *length) == sequence) keys.push_back({kind, 0});
    }
    rest.remove_prefix(1 + *length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return keys;
}

std::vector<Key> KeyReader::flush() {
  if (pending_.empty()) return {};
  const std::string rest = std::exchange(pending_, {}).substr(1);
  std::vector<Key> keys = {{KeyKind::kEscape, 0}};
  for (const Key& key : take(rest)) keys.push_back(key);
  return keys;
}

}  // namespace gpuledger::app::top
