// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/bill/line_words.h"
#include "app/bill/statement.h"

namespace gpuledger::app {

std::string bill_table(const Statement& statement);
std::string bill_csv(const Statement& statement);

// THE table of formats. The words of --format are in src/app/config/config_settings.cc.
struct BillFormat {
  std::string_view name;
  std::string (*write)(const Statement& statement);
  bool has_remarks = true;  // else the caller must show the statement's remarks
};
std::span<const BillFormat> bill_formats();

}  // namespace gpuledger::app
