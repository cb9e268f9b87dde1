#include "trace.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

namespace gpuledger::sim {
namespace {

using Json = nlohmann::json;
constexpr size_t kMostBytes = 512u << 20;

Millis millis(double seconds) {
  return static_cast<Millis>(std::llround(seconds * 1000));
}

std::vector<Trace::Holder> parse_holders(const Json& line) {
  std::vector<Trace::Holder> holders;
  for (const Json& entry : line.at("p")) holders.emplace_back(entry.at(0).get<unsigned>(), entry.at(1).get<uint64_t>());
  return holders;
}

GpmMix parse_mix(const Json& line) {
  GpmMix mix{};
  mix[kGfx] = line.value("gfx", 0.0);
  mix[kSm] = line.value("sm", 0.0);
  mix[kOccupancy] = line.value("occ", 0.0);
  mix[kTensor] = line.value("tensor", 0.0);
  mix[kDram] = line.value("dram", 0.0);
  mix[kFp32] = line.value("fp32", 0.0);
  mix[kFp64] = line.value("fp64", 0.0);
  return mix;
}

void parse_device(const Json& line, Trace* trace) {
  trace->name = line.at("name").get<std::string>();
  trace->uuid = line.at("uuid").get<std::string>();
  trace->driver = line.at("driver").get<std::string>();
  trace->memory_total = line.at("memory_total").get<uint64_t>();
  trace->limit_mw = line.at("power_limit_mw").get<unsigned>();
}

Trace::State parse_state(const Json& line, Millis t) {
  return {t,
          line.at("gpu_util").get<unsigned>(),
          line.at("mem_util").get<unsigned>(),
          line.at("sm_mhz").get<unsigned>(),
          line.at("mem_mhz").get<unsigned>(),
          line.at("temp_c").get<unsigned>(),
          line.at("event_reasons").get<uint64_t>(),
          line.at("memory_used").get<uint64_t>()};
}

// Throws what nlohmann throws; the caller names the line.
void parse_line(const Json& line, Trace* trace) {
  const std::string kind = line.at("k").get<std::string>();
  const Millis t = millis(line.at("t").get<double>());
  trace->length = std::max(trace->length, t);
  if (kind == "device") {
    parse_device(line, trace);
  } else if (kind == "energy") {
    trace->energy.push_back({t, line.at("mj").get<uint64_t>(), line.at("power_mw").get<unsigned>()});
  } else if (kind == "util") {
    trace->caught.push_back({millis(line.at("ts").get<double>()), line.at("pid").get<unsigned>(),
                             line.at("sm").get<unsigned>(), line.at("mem").get<unsigned>(),
                             line.at("enc").get<unsigned>(), line.at("dec").get<unsigned>()});
  } else if (kind == "procs") {
    trace->listings.push_back({t, parse_holders(line), {}});
  } else if (kind == "mps") {
    if (!trace->listings.empty()) trace->listings.back().mps = parse_holders(line);
  } else if (kind == "state") {
    trace->states.push_back(parse_state(line, t));
  } else if (kind == "gpm") {
    trace->activities.push_back({t, parse_mix(line)});
  } else if (kind == "power") {
    for (const Json& sample : line.at("mw")) {
      trace->power.push_back({millis(sample.at(0).get<double>()), sample.at(1).get<unsigned>()});
    }
  }
}

template <typename T>
void sort_by_time(std::vector<T>* entries) {
  std::stable_sort(entries->begin(), entries->end(), [](const T& a, const T& b) { return a.t < b.t; });
}

}  // namespace

Result<Trace> parse_trace(const std::string& text, const std::string& source) {
  Trace trace;
  size_t number = 0;
  for (size_t from = 0; from < text.size();) {
    size_t to = text.find('\n', from);
    if (to == std::string::npos) to = text.size();
    ++number;
    if (to > from) {
      const std::string where = source + ":" + std::to_string(number) + ": ";
      try {
        parse_line(Json::parse(text.begin() + static_cast<long>(from), text.begin() + static_cast<long>(to)), &trace);
      } catch (const Json::exception& error) {
        return Error{Code::kMalformed, where + "not a line of a trace: " + error.what()};
      }
      if (trace.name.empty()) return Error{Code::kMalformed, where + "a trace begins with a line of k \"device\""};
    }
    from = to + 1;
  }
  if (trace.energy.empty()) return Error{Code::kMalformed, source + ": no line of k \"energy\" in this trace"};
  sort_by_time(&trace.energy);
  sort_by_time(&trace.caught);
  sort_by_time(&trace.listings);
  sort_by_time(&trace.states);
  sort_by_time(&trace.activities);
  sort_by_time(&trace.power);
  return trace;
}

Result<Trace> read_trace(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) return Error{Code::kNotFound, path + ": " + std::strerror(errno)};
  std::string text;
  char buffer[65536];
  int got = 0;
  while ((got = gzread(file, buffer, sizeof buffer)) > 0 && text.size() <= kMostBytes) {
    text.append(buffer, static_cast<size_t>(got));
  }
  int code = 0;
  const std::string message = gzerror(file, &code);
  gzclose(file);
  // A gzip file that was cut off ends with Z_BUF_ERROR and not with a failed read.
  if (got < 0 || code == Z_BUF_ERROR) return Error{Code::kMalformed, path + ": cannot be unpacked: " + message};
  if (text.size() > kMostBytes) return Error{Code::kMalformed, path + ": is larger than 512 MiB unpacked"};
  return parse_trace(text, path);
}

std::vector<ProcessSpec> trace_processes(const Trace& trace, unsigned gpu, bool loop) {
  std::map<unsigned, ProcessSpec> by_pid;
  for (const Trace::Listing& listing : trace.listings) {
    for (const auto& [pid, bytes] : listing.compute) {
      ProcessSpec& process = by_pid[pid];
      if (process.pid == 0) {
        process.pid = pid;
        process.start = listing.t;
        process.name = "recorded-" + std::to_string(pid);
        process.command = process.name;
        process.gpus = {gpu};
      }
      process.end = listing.t + 200;  // the lists were read every 200 ms
      process.memory = bytes;
    }
  }
  std::vector<ProcessSpec> processes;
  for (auto& [pid, process] : by_pid) {
    if (!loop && process.end > trace.length) process.end = kForever;  // the last state is held
    if (loop) {
      process.every = trace.length;
      process.lives = process.end - process.start;
      process.pid_step = 0;
      process.end = kForever;
    }
    processes.push_back(std::move(process));
  }
  return processes;
}

}  // namespace gpuledger::sim
