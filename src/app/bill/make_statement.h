// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/bill/grouping.h"

namespace gpuledger::app {

// How the books are shown.
struct BillView {
  BillGroups by = {"namespace"};
  Spread spread = Spread::kKeep;
  BillPrices prices;
  std::string server;  // for the reader; without a password
  // Refuse a group, a model or an owner to spread to that is not there: it may be misspelt. A server that answers for
  // any span does not know that, and says it in Statement::unmet.
  bool must_exist = true;
};

// The same books may be viewed again and again. An error: nothing has what is asked for.
Result<Statement> view_books(const BillBooks& books, const BillView& view);

// Asks the server and views the answer.
Result<Statement> make_statement(const BillAsk& ask, const BillQuery& query, const BillView& view,
                                 const BillProgress& progress = {});

}  // namespace gpuledger::app
