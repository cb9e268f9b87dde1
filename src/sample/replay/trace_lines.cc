// SPDX-License-Identifier: Apache-2.0
#include "sample/replay/trace_lines.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <span>

#include "base/quote.h"

namespace gpuledger::replay {
namespace {

void append_fixed(std::string& out, double value, int decimals) {
  char text[64];
  const int length = std::snprintf(text, sizeof text, "%.*f", decimals, value);
  out.append(text, static_cast<size_t>(length));
}

// A tenth of a millisecond: finer than the driver's own clocks.
void append_seconds(std::string& out, Nanoseconds t) {
  append_fixed(out, std::chrono::duration<double>(t).count(), 4);
}

void begin(std::string& out, const char* kind, Nanoseconds t) {
  out.append("{\"k\":\"").append(kind).append("\",\"t\":");
  append_seconds(out, t);
}

void append_key(std::string& out, const char* key) {
  out.append(",\"").append(key).append("\":");
}

void append_text(std::string& out, const char* key, const std::string& value) {
  append_key(out, key);
  append_quoted(out, value);
}

template <typename T>
void append_whole(std::string& out, const char* key, T value) {
  append_key(out, key);
  out += std::to_string(value);
}

template <typename T>
void append_whole(std::string& out, const char* key, const std::optional<T>& value) {
  if (value) append_whole(out, key, *value);
}

void append_percent(std::string& out, const char* key, const std::optional<Ratio>& ratio) {
  if (!ratio) return;
  append_key(out, key);
  append_fixed(out, ratio->value * 100, 2);
}

void append_holders(std::string& out, const std::vector<Trace::Holder>& holders) {
  append_key(out, "p");
  out += '[';
  for (const Trace::Holder& holder : holders) {
    if (out.back() == ']') out += ',';
    out += "[" + std::to_string(holder.pid) + "," +
           (holder.memory ? std::to_string(holder.memory->count) : std::string("null")) + "]";
  }
  out += ']';
}

// The driver's clock is accurate to microseconds.
void append_milliseconds(std::string& out, Nanoseconds time) {
  append_fixed(out, std::chrono::duration<double, std::milli>(time).count(), 3);
}

using BinSpan = std::span<const ResidencyBin>;

const Residency* find_resident(const ResidencyBin& bin, Pid pid) {
  for (const Residency& resident : bin.residents) {
    if (resident.pid == pid) return &resident;
  }
  return nullptr;
}

template <typename TimeOf>
void append_times(std::string& out, const char* key, BinSpan bins, const std::set<Pid>& pids, TimeOf time_of) {
  append_key(out, key);
  out += '[';
  for (const Pid pid : pids) {
    if (out.back() == ']') out += ',';
    out += "[" + std::to_string(pid) + ",[";
    for (const ResidencyBin& bin : bins) {
      if (out.back() != '[') out += ',';
      const Residency* resident = find_resident(bin, pid);
      append_milliseconds(out, resident == nullptr ? Nanoseconds(0) : time_of(*resident));
    }
    out += "]]";
  }
  out += ']';
}

// "known" is written only if it matters, so that other lines keep their old form.
void append_residency(std::string& out, BinSpan bins) {
  std::set<Pid> pids;
  bool contended = false, nobody = false;
  for (const ResidencyBin& bin : bins) {
    nobody = nobody || bin.residents.empty();
    for (const Residency& resident : bin.residents) {
      pids.insert(resident.pid);
      contended = contended || resident.contended;
    }
  }
  begin(out, "residency", bins.back().end);
  append_key(out, "w");
  append_fixed(out, std::chrono::duration<double>(bins.back().width).count(), 3);
  append_times(out, "p", bins, pids, [](const Residency& resident) { return resident.resident; });
  if (contended) {
    append_times(out, "c", bins, pids,
                 [](const Residency& resident) { return resident.contended.value_or(Nanoseconds(0)); });
  }
  if (nobody) {
    append_key(out, "known");
    out += '[';
    for (size_t i = 0; i < bins.size(); ++i) out += i == 0 ? "1" : ",1";
    out += ']';
  }
  out += "}\n";
}

}  // namespace

void write_device(std::string& out, const Trace& trace) {
  begin(out, "device", Nanoseconds(0));
  append_text(out, "name", trace.name);
  append_text(out, "uuid", trace.uuid);
  append_whole(out, "memory_total", trace.memory_total);
  append_whole(out, "power_limit_mw", trace.limit_milliwatts);
  append_text(out, "driver", trace.driver);
  out += "}\n";
}

void write_counter(std::string& out, const Trace::Counter& counter, Nanoseconds call_time) {
  begin(out, "energy", counter.t);
  append_whole(out, "mj", counter.millijoules);
  append_whole(out, "call_us", std::chrono::duration_cast<std::chrono::microseconds>(call_time).count());
  append_whole(out, "power_mw", counter.milliwatts);
  out += "}\n";
}

void write_ticket(std::string& out, const Trace::Ticket& ticket, Nanoseconds read_at) {
  begin(out, "util", read_at);
  append_key(out, "ts");
  append_seconds(out, ticket.t);
  append_whole(out, "pid", ticket.pid);
  append_whole(out, "sm", ticket.sm);
  append_whole(out, "mem", ticket.memory);
  append_whole(out, "enc", ticket.encoder);
  append_whole(out, "dec", ticket.decoder);
  out += "}\n";
}

void write_listing(std::string& out, const Trace::Listing& listing) {
  begin(out, "procs", listing.t);
  append_holders(out, listing.compute);
  out += "}\n";
  if (listing.mps.empty()) return;
  begin(out, "mps", listing.t);
  append_holders(out, listing.mps);
  out += "}\n";
}

void write_process(std::string& out, const Trace::Process& process) {
  const OwnerKindRow& kind = owner_kind(process.owner.kind);
  begin(out, "process", process.t);
  append_whole(out, "pid", process.pid);
  append_text(out, "name", clean_text(process.name, kMostNameBytes));
  append_key(out, "owner");
  out += "{\"kind\":";
  append_quoted(out, kind.word);
  for (const OwnerField& field : kOwnerFields) {
    const Name& value = process.owner.*field.value;
    const auto makes_kin = [&](const KinField& one) { return one.value == field.value; };
    if (value.empty() || std::none_of(kind.kin.begin(), kind.kin.end(), makes_kin)) continue;
    append_text(out, std::string(field.name).c_str(), clean_text(value, kMostNameBytes));
  }
  out += "}}\n";
}

void write_state(std::string& out, const Trace::State& state) {
  begin(out, "state", state.t);
  append_whole(out, "gpu_util", state.gpu_percent);
  append_whole(out, "mem_util", state.memory_percent);
  append_whole(out, "sm_mhz", state.sm_mhz);
  append_whole(out, "mem_mhz", state.memory_mhz);
  append_whole(out, "temp_c", state.celsius);
  append_whole(out, "event_reasons", state.event_reasons);
  append_whole(out, "memory_used", state.memory_used);
  out += "}\n";
}

void write_busy(std::string& out, const Trace::Busy& busy) {
  const auto& parts = busy.activity.parts;
  begin(out, "gpm", busy.t);
  append_percent(out, "gfx", busy.activity.graphics);
  append_percent(out, "sm", parts[Activity::kSm]);
  append_percent(out, "occ", parts[Activity::kOccupancy]);
  append_percent(out, "tensor", parts[Activity::kTensor]);
  append_percent(out, "dram", parts[Activity::kDram]);
  append_percent(out, "fp32", parts[Activity::kFp32]);
  append_percent(out, "fp64", parts[Activity::kFp64]);
  out += "}\n";
}

void write_power(std::string& out, const std::vector<Trace::Watts>& samples, Nanoseconds read_at) {
  begin(out, "power", read_at);
  append_key(out, "mw");
  out += '[';
  for (const Trace::Watts& sample : samples) {
    if (out.back() == ']') out += ',';
    out += '[';
    append_seconds(out, sample.t);
    out += "," + std::to_string(sample.milliwatts) + "]";
  }
  out += "]}\n";
}

void write_residency(std::string& out, const std::vector<ResidencyBin>& bins) {
  constexpr size_t kMostBins = 5;
  for (size_t first = 0; first < bins.size();) {
    size_t last = first;
    while (last + 1 < bins.size() && last + 1 - first < kMostBins && bins[last + 1].width == bins[last].width &&
           bins[last + 1].end - bins[last].end == bins[last].width) {
      ++last;
    }
    append_residency(out, BinSpan(bins).subspan(first, last - first + 1));
    first = last + 1;
  }
}

}  // namespace gpuledger::replay
