// SPDX-License-Identifier: Apache-2.0
#include "app/bill/formats.h"

#include "app/bill/focus.h"
#include "app/bill/html.h"

namespace gpuledger::app {
namespace {

constexpr BillFormat kFormats[] = {
    {"table", bill_table},
    {"csv", bill_csv, false},
    {"html", bill_html},
    {"focus", [](const Statement& statement) { return bill_focus(statement); }, false},
    {"focus-1.2", [](const Statement& statement) { return bill_focus(statement, FocusVersion::k1_2); }, false},
    {"focus-1.4", [](const Statement& statement) { return bill_focus(statement, FocusVersion::k1_4); }, false},
};

}  // namespace

std::span<const BillFormat> bill_formats() {
  return kFormats;
}

}  // namespace gpuledger::app
