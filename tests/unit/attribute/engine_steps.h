// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include "attribute/books/engine.h"
#include "support/batch_builder.h"
#include "support/laws.h"

namespace gpuledger::attribute {

inline BookingRules rules(Attribution attribution = Attribution::kUtilization,
                          StaticPower static_power = StaticPower::kProportional) {
  BookingRules rules;
  rules.attribution = attribution;
  rules.static_power = static_power;
  return rules;
}

inline Ledger step(Engine& engine, const testing::BatchBuilder& builder) {
  Ledger ledger = engine.advance(builder.batch(), builder.identities());
  testing::expect_balanced(ledger);
  return ledger;
}

inline const ProcessAccount& process(const Ledger& ledger, Pid pid) {
  for (const ProcessAccount& account : ledger.processes) {
    if (account.identity.key.pid == pid) return account;
  }
  ADD_FAILURE() << "no process " << pid;
  return ledger.processes.front();
}

inline Energy reason(const Ledger& ledger, Reason why) {
  return ledger.devices[0].unattributed[static_cast<size_t>(why)];
}

}  // namespace gpuledger::attribute
