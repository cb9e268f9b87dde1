// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "sample/replay/trace.h"

namespace gpuledger::replay {

// Each appends one line of a recording (a listing: one or two), as parse_trace reads it.
void write_device(std::string& out, const Trace& trace);
void write_counter(std::string& out, const Trace::Counter& counter, Nanoseconds call_time);
void write_ticket(std::string& out, const Trace::Ticket& ticket, Nanoseconds read_at);
void write_listing(std::string& out, const Trace::Listing& listing);
// Of the owner only the fields that make kin. Texts that are too long are cut.
void write_process(std::string& out, const Trace::Process& process);
void write_state(std::string& out, const Trace::State& state);
void write_busy(std::string& out, const Trace::Busy& busy);
void write_power(std::string& out, const std::vector<Trace::Watts>& samples, Nanoseconds read_at);
// Five bins to a line; fewer at the end and before a hole between two bins.
void write_residency(std::string& out, const std::vector<ResidencyBin>& bins);

}  // namespace gpuledger::replay
