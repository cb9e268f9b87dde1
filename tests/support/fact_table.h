// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace gpuledger::testing {

using TableRows = std::vector<std::vector<std::string>>;

// Fields between tabs. Lines that begin with # and the first line after them, the header, are left out. Empty: no such
// file.
inline TableRows read_table(const std::string& path) {
  std::ifstream file(path);
  TableRows rows;
  bool header = true;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    if (std::exchange(header, false)) continue;
    std::vector<std::string> row(1);
    for (char c : line) {
      if (c == '\t') {
        row.emplace_back();
      } else {
        row.back().push_back(c);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// The project's own, in tests/data.
inline TableRows read_own_table(const std::string& name) {
  return read_table(std::string(GPU_LEDGER_SOURCE_DIR) + "/tests/data/" + name);
}

// Real strings, some of other projects. They are beside the checkout where the project is developed and are not part of
// it. Our own table has every form of them, so tests elsewhere miss nothing.
inline TableRows read_outside_table(const std::string& name) {
  return read_table(std::string(GPU_LEDGER_SOURCE_DIR) + "/../shared/facts/" + name);
}

// \n, \t, \\ and \xNN.
inline std::string without_table_escapes(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    const char kind = text[++i];
    if (kind == 'x' && i + 2 < text.size()) {
      out.push_back(static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16)));
      i += 2;
    } else {
      out.push_back(kind == 'n' ? '\n' : kind == 't' ? '\t' : kind);
    }
  }
  return out;
}

}  // namespace gpuledger::testing
