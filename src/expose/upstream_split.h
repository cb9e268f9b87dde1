// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::expose {

// In proportion to the weights, in millionths; the parts add up exactly to the number. Empty: it is negative, has more
// than six decimals or an exponent, or all weights are 0.
std::optional<std::vector<std::string>> split_decimal(std::string_view number, const std::vector<uint64_t>& weights);

struct WholeParts {
  std::vector<std::string> parts;
  std::string rest;
};
// Each part is what is wanted, or less if the sum exceeds the number. `rest` is what is left. Empty: not a whole
// number.
std::optional<WholeParts> split_whole(std::string_view number, const std::vector<uint64_t>& wanted);

}  // namespace gpuledger::expose
