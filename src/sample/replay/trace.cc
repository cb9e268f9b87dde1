// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/trace.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "model/most_power.h"
#include "sample/replay/trace_fields.h"

namespace gpuledger::replay {
namespace {

constexpr size_t kMostBytes = 512u << 20;

Activity parse_activity(Line& line) {
  Activity activity;
  activity.graphics = line.percent("gfx");
  activity.parts[Activity::kSm] = line.percent("sm");
  activity.parts[Activity::kOccupancy] = line.percent("occ");
  activity.parts[Activity::kTensor] = line.percent("tensor");
  activity.parts[Activity::kDram] = line.percent("dram");
  activity.parts[Activity::kFp32] = line.percent("fp32");
  activity.parts[Activity::kFp64] = line.percent("fp64");
  return activity;
}

void parse_device(Line& line, Trace& trace) {
  trace.name = line.text("name");
  trace.uuid = line.text("uuid");
  trace.driver = line.text("driver");
  trace.memory_total = line.optional_whole("memory_total", kMost64);
  trace.limit_milliwatts = line.optional_whole<uint32_t>("power_limit_mw", kMost32);
}

Trace::Ticket parse_ticket(Line& line) {
  Trace::Ticket ticket;
  ticket.t = line.seconds("ts");
  ticket.pid = line.whole<Pid>("pid", kMostPid);
  ticket.sm = line.whole<uint32_t>("sm", kMost32);
  ticket.memory = line.whole<uint32_t>("mem", kMost32);
  ticket.encoder = line.whole<uint32_t>("enc", kMost32);
  ticket.decoder = line.whole<uint32_t>("dec", kMost32);
  return ticket;
}

// A kind of owner of another version is unknown: its processes have no kin.
Trace::Process parse_process(Line& line, Nanoseconds t) {
  Trace::Process process;
  process.t = t;
  process.pid = line.whole<Pid>("pid", kMostPid);
  process.name = line.bounded_text("name", kMostNameBytes);
  line.enter("owner");
  const std::string kind = line.bounded_text("kind", kMostNameBytes);
  process.owner.kind = OwnerKind::kUnknown;
  for (const OwnerKindRow& row : kOwnerKinds) {
    if (row.word == kind) process.owner.kind = row.kind;
  }
  for (const KinField& field : owner_kind(process.owner.kind).kin) {
    process.owner.*field.value = line.optional_text(name_of(field), kMostNameBytes);
  }
  return process;
}

Trace::State parse_state(Line& line, Nanoseconds t) {
  Trace::State state;
  state.t = t;
  state.gpu_percent = line.optional_whole<uint32_t>("gpu_util", kMost32);
  state.memory_percent = line.optional_whole<uint32_t>("mem_util", kMost32);
  state.sm_mhz = line.optional_whole<uint32_t>("sm_mhz", kMost32);
  state.memory_mhz = line.optional_whole<uint32_t>("mem_mhz", kMost32);
  state.celsius = line.optional_whole<uint32_t>("temp_c", kMost32);
  state.event_reasons = line.optional_whole("event_reasons", kMost64);
  state.memory_used = line.optional_whole("memory_used", kMost64);
  return state;
}

void parse_line(Line& line, const std::string& kind, Trace& trace) {
  const Nanoseconds t = line.seconds("t");
  trace.length = std::max(trace.length, t);
  if (kind == "device") {
    parse_device(line, trace);
  } else if (kind == "energy") {
    trace.counters.push_back(
        {t, line.whole("mj", uint64_t{kMostMillijoules}), line.optional_whole<uint32_t>("power_mw", kMost32)});
  } else if (kind == "util") {
    trace.tickets.push_back(parse_ticket(line));
  } else if (kind == "procs") {
    trace.listings.push_back({t, line.holders(), {}});
  } else if (kind == "mps") {
    // Belongs to the compute list read just before.
    if (trace.listings.empty()) trace.listings.push_back({t, {}, {}});
    trace.listings.back().mps = line.holders();
  } else if (kind == "process") {
    trace.processes.push_back(parse_process(line, t));
  } else if (kind == "state") {
    trace.states.push_back(parse_state(line, t));
  } else if (kind == "gpm") {
    trace.activities.push_back({t, parse_activity(line)});
  } else if (kind == "power") {
    for (const Trace::Watts& sample : line.watts()) trace.power.push_back(sample);
  } else if (kind == "residency") {
    for (Trace::Resident& resident : line.residency(t)) trace.residency.push_back(std::move(resident));
  }
}

// Empty: valid.
std::string add_line(std::string_view text, Trace& trace) {
  Line line(text);
  const std::string kind = line.text("k");
  if (line.problem().empty()) {
    const bool first = trace.name.empty();
    if (first && kind != "device") return "a trace begins with a line of k \"device\"";
    if (!first && kind == "device") return "a trace has one line of k \"device\", this is another";
    parse_line(line, kind, trace);
    if (line.problem().empty() && trace.name.empty()) return "the device has no name";
  }
  return line.problem().empty() ? "" : "not a line of a trace: " + line.problem();
}

template <typename T>
void sort_by_time(std::vector<T>& entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const T& a, const T& b) { return a.t < b.t; });
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& source) {
  Trace trace;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = take_until(text, '\n');
    const std::string problem = line.empty() ? "" : add_line(line, trace);
    if (!problem.empty()) return Error{Code::kMalformed, source + ":" + std::to_string(number) + ": " + problem};
  }
  if (trace.counters.empty()) return Error{Code::kMalformed, source + ": no line of k \"energy\" in this trace"};
  sort_by_time(trace.counters);
  sort_by_time(trace.tickets);
  sort_by_time(trace.listings);
  sort_by_time(trace.processes);
  sort_by_time(trace.states);
  sort_by_time(trace.activities);
  sort_by_time(trace.power);
  sort_by_time(trace.residency);
  return trace;
}

Result<Trace> read_trace(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return Error{errno == ENOENT ? Code::kNotFound : Code::kUnavailable, path + ": " + std::strerror(errno)};
  }
  std::string text;
  char buffer[65536];
  int got = 0;
  while ((got = gzread(file, buffer, sizeof buffer)) > 0 && text.size() <= kMostBytes) {
    text.append(buffer, static_cast<size_t>(got));
  }
  int code = 0;
  const char* said = gzerror(file, &code);
  const std::string why = code == Z_ERRNO ? std::strerror(errno) : said;
  gzclose(file);
  // A truncated gzip file ends with Z_BUF_ERROR, not with a failed read.
  if (got < 0 || code == Z_BUF_ERROR) return Error{Code::kMalformed, path + ": cannot be unpacked: " + why};
  if (text.size() > kMostBytes) return Error{Code::kMalformed, path + ": is larger than 512 MiB unpacked"};
  return parse_trace(text, path);
}

}  // namespace gpuledger::replay
