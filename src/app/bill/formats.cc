// SPDX-License-Identifier: Apache-2.0
#include "app/bill/formats.h"

namespace gpuledger::app {
namespace {

constexpr BillFormat kFormats[] = {
    {"table", bill_table},
    {"csv", bill_csv},
};

}  // namespace

std::span<const BillFormat> bill_formats() {
  return kFormats;
}

std::string line_name(const BillLine& line) {
  return line.kind == LineKind::kNobody ? "nobody: " + line.name : line.name;
}

}  // namespace gpuledger::app
