// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "app/bill/bill_query.h"
#include "app/bill/statement.h"

// What inference servers counted, and what a token took: docs/tokens.md.
namespace gpuledger::app {

inline constexpr double kTokensPerMillion = 1e6;

// Servers say their pod by labels of their target, so a bill by something else has no tokens.
Status check_token_groups(const std::vector<std::string>& by);

// Asks for the increase of the servers' counters in every step and gives the lines of a statement by `by` their tokens,
// in whole numbers. What is no number is left out with a remark. An error: no server has any.
// `ask` makes one series of those of two replicas.
Status add_tokens(const BillAsk& ask, const BillQuery& query, const std::vector<std::string>& by, Statement& statement);

// Of a line that has tokens.
inline double joules_per_token(const BillLine& line) {
  return static_cast<double>(line.charged_millijoules()) / 1000 / line.tokens->all();
}
inline double per_million_tokens(const BillLine& line, double amount) {
  return amount / line.tokens->all() * kTokensPerMillion;
}
// Of any line.
inline double millions_of_tokens(const BillLine& line) {
  return line.tokens ? line.tokens->all() / kTokensPerMillion : 0;
}
inline double millions_generated(const BillLine& line) {
  return line.tokens ? line.tokens->generated / kTokensPerMillion : 0;
}

}  // namespace gpuledger::app
