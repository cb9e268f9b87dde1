// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "attribute/estimate/constants.h"
#include "base/result.h"
#include "model/ledger.h"
#include "model/policy.h"
#include "sample/replay/trace.h"

namespace gpuledger::app {

// The books at the end of a recording, made by the engine that also runs live. An error means that they did not balance
// at some step, which is a bug.
Result<Ledger> run_replay(const replay::Trace& trace, BookingRules rules,
                          const std::function<void(Nanoseconds, const Ledger&)>& after_step = {},
                          const attribute::Constants& constants = {});

// {"device":{...},"processes":[...]}, one entry per pid, with every joule exact to the microjoule.
std::string write_replay(const Ledger& ledger);
// One line: {"t":seconds,"processes":[...]}.
std::string write_replay_step(Nanoseconds t, const Ledger& ledger);

}  // namespace gpuledger::app
