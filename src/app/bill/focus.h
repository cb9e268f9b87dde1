// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/bill/statement.h"

namespace gpuledger::app {

// Versions of the FinOps Open Cost and Usage Specification, in their order. 1.3 has the provider columns of both
// generations.
enum class FocusVersion { k1_2, k1_3, k1_4 };

// The bill as a FOCUS Cost and Usage dataset, CSV. One line for the energy of each line of the statement, and one for
// its GPU hours of each model that has a price. BilledCost adds up to the statement's cost, each is ListUnitPrice times
// PricingQuantity; ConsumedQuantity in kWh adds up to the meter.
std::string bill_focus(const Statement& statement, FocusVersion version = FocusVersion::k1_3);

}  // namespace gpuledger::app
