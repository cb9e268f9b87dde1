// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace gpuledger::identity {

// Protobuf by hand. The tests write what servers send by the field numbers of their documentation, and not with the
// messages under test, which would agree with themselves whatever their numbers are.
inline std::string wire_varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string wire_field(uint32_t number, std::string_view bytes) {
  return wire_varint(number << 3 | 2) + wire_varint(bytes.size()) + std::string(bytes);
}
inline std::string wire_number(uint32_t number, uint64_t value) {
  return wire_varint(number << 3) + wire_varint(value);
}
inline std::string wire_map(uint32_t number, const std::map<std::string, std::string>& entries) {
  std::string out;
  for (const auto& [key, value] : entries) out += wire_field(number, wire_field(1, key) + wire_field(2, value));
  return out;
}

}  // namespace gpuledger::identity
