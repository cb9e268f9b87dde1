#include "sample/replay/trace.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

namespace gpuledger::replay {
namespace {

using Json = nlohmann::json;
constexpr size_t kMostBytes = 512u << 20;
constexpr double kLongestSeconds = 1e8;                       // three years, far inside what nanoseconds hold
constexpr uint64_t kMostMillijoules = 1'000'000'000'000'000;  // fits the ledger's microjoules
constexpr uint64_t kMostPid = 1u << 22;                       // the kernel's own limit
constexpr double kWidestBinSeconds = 10;
constexpr uint64_t kMost32 = UINT32_MAX;
constexpr uint64_t kMost64 = UINT64_MAX;

// One line's fields. The first that is wrong is remembered and the line is refused as a whole, so that the readers
// below need no branches of their own.
class Line {
 public:
  explicit Line(std::string_view text) : json_(Json::parse(text, nullptr, false)) {
    if (!json_.is_object()) wrong("it is not a JSON object");
  }

  const std::string& problem() const { return problem_; }

  std::string text(const char* key) {
    const Json* value = find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    missing_or(key, value, "is not a text");
    return {};
  }

  template <typename T = uint64_t>
  T whole(const char* key, uint64_t most) {
    const auto value = optional_whole<T>(key, most);
    if (!value) missing_or(key, find(key), "is not a number");
    return value.value_or(T{});
  }

  template <typename T = uint64_t>
  std::optional<T> optional_whole(const char* key, uint64_t most) {
    const Json* value = find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return static_cast<T>(whole_of(*value, key, most));
  }

  Nanoseconds seconds(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) {
      missing_or(key, value, "");
      return Nanoseconds(0);
    }
    return seconds_of(*value, key);
  }

  std::optional<Ratio> percent(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (std::isfinite(number) && number >= 0) return Ratio{number / 100};
    wrong(std::string("'") + key + "' is not a percentage");
    return std::nullopt;
  }

  std::vector<Trace::Holder> holders() {
    std::vector<Trace::Holder> holders;
    for (const Json* pair : pairs("p")) {
      Trace::Holder holder{static_cast<Pid>(whole_of((*pair)[0], "p", kMostPid)), std::nullopt};
      if (!(*pair)[1].is_null()) holder.memory = Bytes{whole_of((*pair)[1], "p", kMost64)};
      holders.push_back(holder);
    }
    return holders;
  }

  std::vector<Trace::Watts> watts() {
    std::vector<Trace::Watts> watts;
    for (const Json* pair : pairs("mw")) {
      watts.push_back({seconds_of((*pair)[0], "mw"), static_cast<uint32_t>(whole_of((*pair)[1], "mw", kMost32))});
    }
    return watts;
  }

  // "p" and "c" hold milliseconds per process and bin, "known" a 1 for each bin that is known. Without "known" a bin
  // with nobody in it may be either, so it is taken as unknown.
  std::vector<Trace::Resident> residency(Nanoseconds t) {
    const Json* width_given = find("w");
    const double seconds = width_given != nullptr && width_given->is_number() ? width_given->get<double>() : 0;
    if (!(seconds > 0 && seconds <= kWidestBinSeconds)) missing_or("w", width_given, "is not a width in seconds");
    const Nanoseconds width(std::llround(seconds * 1e9));
    const auto resident = milliseconds_by_pid("p", width);
    const auto contended = find("c") == nullptr ? decltype(resident)() : milliseconds_by_pid("c", width);
    const std::vector<bool> known = known_bins();
    const size_t count = resident.empty() ? known.size() : resident.begin()->second.size();
    if (!known.empty() && known.size() != count) wrong("'known' is not as long as the lists in 'p'");
    if (!problem_.empty()) return {};
    std::vector<Trace::Resident> bins;
    for (size_t i = 0; i < count; ++i) {
      ResidencyBin bin{t - static_cast<int64_t>(count - 1 - i) * width, width, {}};
      for (const auto& [pid, times] : resident) {
        if (times[i] == Nanoseconds(0)) continue;
        const auto found = contended.find(pid);
        std::optional<Nanoseconds> part;
        if (find("c") != nullptr) part = found == contended.end() ? Nanoseconds(0) : found->second[i];
        bin.residents.push_back({pid, times[i], part});
      }
      if (known.empty() ? !bin.residents.empty() : known[i]) bins.push_back({bin.end, std::move(bin)});
    }
    return bins;
  }

 private:
  // Every list is as long as the first one of the line.
  std::map<Pid, std::vector<Nanoseconds>> milliseconds_by_pid(const char* key, Nanoseconds width) {
    const double most = static_cast<double>(width.count()) / 1e6 * 1.001;  // they are rounded
    std::map<Pid, std::vector<Nanoseconds>> lists;
    for (const Json* pair : pairs(key)) {
      std::vector<Nanoseconds>& times = lists[static_cast<Pid>(whole_of((*pair)[0], key, kMostPid))];
      if (!(*pair)[1].is_array() || !times.empty()) wrong(std::string("'") + key + "' is not a list of lists by pid");
      for (const Json& value : (*pair)[1]) {
        const double number = value.is_number() ? value.get<double>() : -1;
        if (!(number >= 0 && number <= most)) wrong(std::string("'") + key + "' has a time that is not within 'w'");
        times.push_back(std::min(width, Nanoseconds(std::llround(std::clamp(number, 0.0, most) * 1e6))));
      }
      bins_ = bins_ == 0 ? times.size() : bins_;
      if (times.size() != bins_ || bins_ == 0) wrong(std::string("'") + key + "' has lists of different lengths");
    }
    return lists;
  }
  std::vector<bool> known_bins() {
    std::vector<bool> known;
    const Json* list = find("known");
    if (list == nullptr) return known;
    if (!list->is_array()) wrong("'known' is not a list");
    for (const Json& value : *list) known.push_back(whole_of(value, "known", 1) == 1);
    return known;
  }

  const Json* find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  void wrong(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  void missing_or(const char* key, const Json* value, const char* otherwise) {
    wrong(std::string("'") + key + "' " + (value == nullptr ? "not found" : otherwise));
  }
  uint64_t whole_of(const Json& value, const char* key, uint64_t most) {
    if (value.is_number_unsigned() && value.get<uint64_t>() <= most) return value.get<uint64_t>();
    wrong(std::string("'") + key + "' is not a whole number between 0 and " + std::to_string(most));
    return 0;
  }
  Nanoseconds seconds_of(const Json& value, const char* key) {
    const double number = value.is_number() ? value.get<double>() : kLongestSeconds * 2;
    // A little before 0 is right: what the driver had sampled when the recording began.
    if (std::isfinite(number) && std::abs(number) <= kLongestSeconds) return Nanoseconds(std::llround(number * 1e9));
    wrong(std::string("'") + key + "' is not a time in seconds");
    return Nanoseconds(0);
  }
  std::vector<const Json*> pairs(const char* key) {
    std::vector<const Json*> pairs;
    const Json* list = find(key);
    if (list == nullptr || !list->is_array()) {
      missing_or(key, list, "is not a list");
      return pairs;
    }
    for (const Json& entry : *list) {
      if (entry.is_array() && entry.size() == 2) {
        pairs.push_back(&entry);
      } else {
        wrong(std::string("'") + key + "' is not a list of pairs");
      }
    }
    return pairs;
  }

  const Json json_;
  std::string problem_;
  size_t bins_ = 0;  // of a residency line; 0: not known yet
};

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
        {t, line.whole("mj", kMostMillijoules), line.optional_whole<uint32_t>("power_mw", kMost32)});
  } else if (kind == "util") {
    trace.tickets.push_back(parse_ticket(line));
  } else if (kind == "procs") {
    trace.listings.push_back({t, line.holders(), {}});
  } else if (kind == "mps") {
    // Belongs to the compute list read just before.
    if (trace.listings.empty()) trace.listings.push_back({t, {}, {}});
    trace.listings.back().mps = line.holders();
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

// Empty: all is well.
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
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) {
      const std::string problem = add_line(text.substr(0, end), trace);
      if (!problem.empty()) return Error{Code::kMalformed, source + ":" + std::to_string(number) + ": " + problem};
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (trace.counters.empty()) return Error{Code::kMalformed, source + ": no line of k \"energy\" in this trace"};
  sort_by_time(trace.counters);
  sort_by_time(trace.tickets);
  sort_by_time(trace.listings);
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
  // A gzip file that was cut off ends with Z_BUF_ERROR and not with a failed read.
  if (got < 0 || code == Z_BUF_ERROR) return Error{Code::kMalformed, path + ": cannot be unpacked: " + why};
  if (text.size() > kMostBytes) return Error{Code::kMalformed, path + ": is larger than 512 MiB unpacked"};
  return parse_trace(text, path);
}

}  // namespace gpuledger::replay
