// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuledger::expose {

// In proportion to the weights, to the millionth; the parts add up to the number exactly. Empty: it is negative, has
// more than six decimals or an exponent, or nobody has any weight.
std::optional<std::vector<std::string>> split_decimal(std::string_view number, const std::vector<uint64_t>& weights);

struct WholeParts {
  std::vector<std::string> parts;
  std::string rest;
};
// Everybody gets what is wanted, the rest is what is left; less for all when there is not enough. Empty: not a whole
// number.
std::optional<WholeParts> split_whole(std::string_view number, const std::vector<uint64_t>& wanted);

}  // namespace gpuledger::expose
