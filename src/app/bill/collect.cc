// SPDX-License-Identifier: Apache-2.0
#include "app/bill/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/bill/allocations.h"
#include "app/bill/amounts.h"
#include "app/bill/co2e.h"
#include "app/bill/gaps.h"
#include "app/bill/scrapes.h"
#include "app/bill/seen_before.h"

namespace gpuledger::app {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr double kMicrojoulesPerWh = 3.6e9;
constexpr int64_t kClocksDifferMs = 60'000;
constexpr const char* kHasBooted = "the machine has booted";
constexpr const char* kNotSeen = "not seen any more";

class Collector {
 public:
  Collector(const BillAsk& ask, const BillQuery& query)
      : ask_(ask),
        query_(query),
        co2e_(ask, query),
        scrapes_(ask, query, books_.facts),
        allocations_(ask, query, books_) {
    books_.span = query.span;
    books_.has_co2e = co2e_.known();
  }

  Result<BillBooks> run(const BillProgress& progress) {
    std::vector<sys_seconds> times;
    for (sys_seconds at = query_.span.begin; at < query_.span.end; at += query_.step) times.push_back(at);
    times.insert(times.end(), query_.price_changes.begin(), query_.price_changes.end());
    times.push_back(query_.span.end);
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    books_.price_changes = query_.price_changes;
    GL_TRY_STATUS(before_.read(ask_, query_));
    for (size_t i = 0; i < times.size(); ++i) {
      const BillSpan step{times[i == 0 ? 0 : i - 1], times[i]};
      books_.period = period_at(books_, step.begin);
      if (i > 0) GL_TRY_STATUS(co2e_.read(step));
      if (i > 0) GL_TRY_STATUS(scrapes_.read_infos(step));
      GL_TRY_STATUS(read_time(step.begin, step.end, i == 0));
      if (i > 0) GL_TRY_STATUS(allocations_.read(step));
      if (progress) progress(i + 1, times.size());
    }
    name_the_gone();
    allocations_.finish();
    if (books_.nodes.empty()) {
      return Error{Code::kNotFound, std::string("the server has no ") + kMeterName + " between " +
                                        time_text(query_.span.begin) + " and " + time_text(query_.span.end) +
                                        (query_.match.empty() ? "; does it scrape gpu-ledger?"
                                                              : " with " + query_.match +
                                                                    "; --match must fit the meters too, which have no "
                                                                    "namespace or user; --by splits a bill by team")};
    }
    before_.name_the_lost(books_);
    lacks_.name(books_);
    name_the_owing();
    for (std::string& remark : scrapes_.remarks()) books_.remarks.push_back(std::move(remark));
    std::sort(books_.gaps.begin(), books_.gaps.end(), [](const BillGap& a, const BillGap& b) {
      return std::tuple(a.node, a.span.begin) < std::tuple(b.node, b.span.begin);
    });
    return std::move(books_);
  }

 private:
  Status read_time(sys_seconds before, sys_seconds at, bool first) {
    GL_TRY(readings, scrapes_.last(at));
    std::map<BillNode, Presence> present;
    if (!first) {
      GL_TRY(found, presence(readings, before, at));
      present = std::move(found);
    }
    present_.clear();
    for (const auto& [name, reading] : readings) present_.insert(name);
    // Those that are gone again first, and of them those that were known: their books may go on under another name.
    for (const bool known : {true, false}) {
      for (const auto& [name, seen] : present) {
        if (readings.contains(name) || books_.nodes.contains(name) != known) continue;
        const int64_t from = known ? books_.nodes[name].last_ms : to_ms(before);
        GL_TRY_STATUS(follow(name, seen.matchers, from, to_ms(at)));
      }
    }
    for (auto& [name, reading] : readings) {
      GL_TRY_STATUS(co2e_.check(name, at));
      const auto known = books_.nodes.find(name);
      if (known == books_.nodes.end()) {
        if (first) {
          open(reading);
        } else {
          GL_TRY_STATUS(follow(name, reading.matchers, to_ms(before), to_ms(at)));
          take(reading);
        }
        continue;
      }
      if (present[name].fell || changed(known->second, reading)) {
        GL_TRY_STATUS(follow(name, known->second.matchers, known->second.last_ms, to_ms(at)));
      }
      take(reading);
    }
    return ok_status();
  }

  struct Presence {
    std::string matchers;
    bool fell = false;  // a counter did
  };
  // Nodes that were scraped since `before`, and since they were last seen.
  Result<std::map<BillNode, Presence>> presence(const std::map<BillNode, NodeReading>& readings, sys_seconds before,
                                                sys_seconds at) {
    int64_t oldest = to_ms(before);
    for (const auto& [name, reading] : readings) {
      if (const auto known = books_.nodes.find(name); known != books_.nodes.end()) {
        oldest = std::min(oldest, known->second.last_ms);
      }
    }
    // Longer: a counter also fell if it did between its last sample and the step's begin.
    const int64_t window = (to_ms(at) - oldest) / 1000 + kLookback.count();
    GL_TRY(answer, ask_(fmt::format("resets({}[{}s])", select_series(query_, kMeterName), window), at));
    std::map<BillNode, Presence> found;
    for (const BillSeries& series : answer) {
      Presence& one = found[node_of(series)];
      one.matchers = matchers_of(series);
      one.fell = one.fell || series.samples.back().value > 0;
    }
    return found;
  }

  // Whether a GPU has other books, or went away.
  static bool changed(const BillBooks::Node& node, const NodeReading& reading) {
    return std::any_of(node.gpus.begin(), node.gpus.end(), [&](const auto& gpu) {
      const auto now = reading.gpus.find(gpu.first);
      if (now == reading.gpus.end()) return gpu.second.last_at_ms() >= node.last_ms;
      return gpu.second.changed(now->second, reading.times());
    });
  }

  void open(const NodeReading& reading) {
    BillBooks::Node& node = books_.nodes[reading.node];
    node.matchers = reading.matchers;
    node.first_ms = node.last_ms = reading.at_ms;
    for (const auto& [uuid, gpu] : reading.gpus) node.gpus[uuid].open(gpu, reading.times());
  }

  void take(const NodeReading& reading) {
    const auto [place, new_node] = books_.nodes.try_emplace(reading.node);
    BillBooks::Node& node = place->second;
    // A time that ends with the reading.
    const GpuBooks::Rates rates{co2e_.grams_per_microjoule(reading.node),
                                period_at(books_, from_ms(reading.at_ms - 1))};
    std::map<Missing, std::vector<std::string>> missing;
    for (const auto& [uuid, gpu] : reading.gpus) {
      GpuBooks& books = node.gpus[uuid];
      const bool fresh = books.last_at_ms() == 0;
      if (fresh || books.taken_over() || (gpu.opened_ms && !books.are_of(gpu))) {
        if (GpuBooks* other = books_elsewhere(reading, uuid, books.last_at_ms())) {
          books.take_over(*other);
        } else if (fresh) {
          if (auto arrived = arrive(reading, uuid, new_node, books)) missing[*std::move(arrived)].push_back(uuid);
        }
      }
      const int64_t last = books.last_at_ms();
      const auto step = books.advance(gpu, reading.times(), rates, books_.facts);
      if (step != GpuBooks::Step::kWentOn && step != GpuBooks::Step::kReadBack) {
        missing[loss(reading, gpu, step, last)].push_back(uuid);
      }
    }
    for (const auto& [hours, gpus] : missing) name_missing(reading, hours, gpus);
    if (new_node) node.first_ms = reading.at_ms;
    node.last_ms = std::max(node.last_ms, reading.at_ms);
    node.matchers = reading.matchers;
  }

  // Hours of a GPU that are in no counter, or not only in this span's.
  struct Missing {
    int64_t from = 0;
    int64_t to = 0;
    std::string why;
    friend auto operator<=>(const Missing&, const Missing&) = default;
  };

  // A GPU that was not there at the begin. Its counters begin at 0 if its books were opened in the span.
  std::optional<Missing> arrive(const NodeReading& reading, const std::string& uuid, bool new_node, GpuBooks& books) {
    const GpuReading& gpu = reading.gpus.at(uuid);
    const int64_t begin = to_ms(query_.span.begin);
    const auto opened = gpu.opened_ms;
    if (!opened || *opened < begin || before_.has_books(reading.node, uuid, *opened)) {
      books.open(gpu, reading.times());
      return Missing{begin, reading.at_ms,
                     opened ? "first seen with counters of an earlier time"
                            : "first seen then; its release does not say when its counters began at 0"};
    }
    const int64_t zero = std::min(*opened, reading.at_ms);  // the exporter's clock may be ahead
    books.open_at_zero(gpu, zero);
    if ((new_node && before_.has(reading.node)) || before_.has_gpu(reading.node, uuid, books_))
      return Missing{begin, zero, "not seen at the begin, although it was seen the day before"};
    if (!new_node) return std::nullopt;
    const int64_t booted = reading.booted_ms.value_or(0);
    if (booted > zero + kClocksDifferMs) return Missing{begin, booted, kHasBooted};
    // A new machine installs its driver first.
    constexpr int64_t kSetUpMs = 900'000;
    if (booted >= begin && zero - booted <= kSetUpMs) return std::nullopt;
    return Missing{std::max(begin, booted), zero, "its books were opened only then"};
  }

  // The newest books of the GPU at a node of another name: one without a label `node` is named by its address. Null:
  // none, or none newer than `known_ms`. Simulated GPUs have UUIDs of others: if it has other books now, that node must
  // be gone.
  GpuBooks* books_elsewhere(const NodeReading& reading, const std::string& uuid, int64_t known_ms) {
    GpuBooks* newest = nullptr;
    for (auto& [name, node] : books_.nodes) {
      const auto other = node.gpus.find(uuid);
      if (name == reading.node || other == node.gpus.end() || other->second.taken_over()) continue;
      GpuBooks& books = other->second;
      const bool same = books.are_of(reading.gpus.at(uuid));
      const bool gone = !present_.contains(name) && books.last_at_ms() <= reading.at_ms;
      const bool newer = books.last_at_ms() > (newest == nullptr ? known_ms : newest->last_at_ms());
      if (newer && (same || gone)) newest = &books;
    }
    return newest;
  }

  // What an exporter spent between its last scrape and its end is in no counter.
  static Missing loss(const NodeReading& reading, const GpuReading& gpu, GpuBooks::Step step, int64_t last) {
    const bool again = step == GpuBooks::Step::kBeganAgain;
    int64_t until = reading.at_ms;
    if (again) {
      // A boot since then lost something again. Its clock may have been ahead when it opened its books.
      const int64_t opened = std::max(*gpu.opened_ms, reading.booted_ms.value_or(0));
      until = std::clamp(opened, std::min(last, reading.at_ms), reading.at_ms);
    }
    return {last, until,
            again                               ? "restarted without --state-file"
            : step == GpuBooks::Step::kBooted   ? kHasBooted
            : step == GpuBooks::Step::kWentBack ? "restarted with an older state file"
                                                : "restarted; its release does not say whether its counters went on"};
  }

  // By node, if it is so of all its GPUs.
  void name_missing(const NodeReading& reading, const Missing& missing, const std::vector<std::string>& gpus) {
    std::vector<std::string> names;
    for (const std::string& uuid : gpus) names.push_back(reading.node.text() + " " + uuid);
    if (gpus.size() == reading.gpus.size()) names = {reading.node.text()};
    for (const std::string& name : names) lacks_.add(name, missing.from, missing.to, missing.why);
  }

  // Every scrape of a time.
  Status follow(const BillNode& name, const std::string& matchers, int64_t from, int64_t to) {
    GL_TRY(all, scrapes_.between(name, matchers, from, to));
    for (const NodeReading& reading : all) take(reading);
    return ok_status();
  }

  // Nodes and GPUs that are not there at the end.
  void name_the_gone() {
    const int64_t end = to_ms(query_.span.end);
    for (auto& [name, node] : books_.nodes) {
      const bool moved =
          std::all_of(node.gpus.begin(), node.gpus.end(), [](const auto& gpu) { return gpu.second.taken_over(); });
      if (moved) continue;
      if (node.last_ms < end) lacks_.add(name.text(), node.last_ms, end, kNotSeen);
      for (const auto& [uuid, gpu] : node.gpus) {
        if (gpu.last_at_ms() < node.last_ms && !gpu.taken_over()) {
          lacks_.add(name.text() + " " + uuid, gpu.last_at_ms(), end, kNotSeen);
        }
      }
    }
  }

  // A counter fell without a known restart: the bill is incomplete, and no owner gets a credit.
  void name_the_owing() {
    for (const auto& [name, node] : books_.nodes) {
      for (const auto& [uuid, gpu] : node.gpus) {
        for (const auto& [owner, microjoules] : gpu.owing()) {
          books_.gaps.push_back(
              {name.text() + " " + uuid,
               {from_ms(gpu.first_at_ms()), from_ms(gpu.last_at_ms())},
               fmt::format("{} has {:.3f} Wh less at the end than at the begin; its counter was lost",
                           owner_text(owner, books_.facts), static_cast<double>(microjoules) / kMicrojoulesPerWh)});
        }
      }
    }
  }

  const BillAsk& ask_;
  const BillQuery& query_;
  BillBooks books_;
  BillCo2e co2e_;
  BillScrapes scrapes_;
  BillAllocations allocations_;
  SeenBefore before_;
  BillLacks lacks_{query_};
  std::set<BillNode> present_;  // at the end of the step
};

}  // namespace

Result<BillBooks> collect_books(const BillAsk& ask, const BillQuery& query, const BillProgress& progress) {
  return Collector(ask, query).run(progress);
}

}  // namespace gpuledger::app
