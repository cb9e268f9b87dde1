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
    times.push_back(query_.span.end);
    GL_TRY_STATUS(before_.read(ask_, query_));
    for (size_t i = 0; i < times.size(); ++i) {
      const BillSpan step{times[i == 0 ? 0 : i - 1], times[i]};
      if (i > 0) GL_TRY_STATUS(co2e_.read(step));
      if (i > 0) GL_TRY_STATUS(scrapes_.read_infos(step));
      GL_TRY_STATUS(read_time(step.begin, step.end, i == 0));
      if (i > 0) GL_TRY_STATUS(allocations_.read(step));
      if (progress) progress(i + 1, times.size());
    }
    allocations_.finish();
    GL_TRY_STATUS(follow_the_gone());
    if (books_.nodes.empty()) {
      return Error{Code::kNotFound, std::string("the server has no ") + kMeterName + " between " +
                                        time_text(query_.span.begin) + " and " + time_text(query_.span.end) +
                                        (query_.match.empty() ? "; does it scrape gpu-ledger?"
                                                              : " with " + query_.match +
                                                                    "; --match must fit the meters too, which have no "
                                                                    "namespace or user; --by splits a bill by team")};
    }
    before_.name_the_lost(books_);
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
    for (auto& [name, reading] : readings) {
      GL_TRY_STATUS(co2e_.check(name, at));
      const auto known = books_.nodes.find(name);
      if (known == books_.nodes.end()) {
        GL_TRY_STATUS(first ? open(reading) : take_newcomer(name, reading.matchers, &reading, before, at));
        continue;
      }
      if (present[name].began_again || fell(known->second, reading) || restarted(known->second, reading) ||
          lost_a_gpu(known->second, reading)) {
        GL_TRY_STATUS(follow(name, known->second.last_ms, to_ms(at)));
      }
      take(reading);
    }
    for (const auto& [name, seen] : present) {
      if (readings.contains(name)) continue;
      if (const auto known = books_.nodes.find(name); known != books_.nodes.end()) {
        known->second.present_ms = to_ms(at);
      } else {
        GL_TRY_STATUS(take_newcomer(name, seen.matchers, nullptr, before, at));  // it came and went within the step
      }
    }
    return ok_status();
  }

  struct Presence {
    std::string matchers;
    bool began_again = false;      // a counter did, or may have
    std::set<std::string> places;  // of the exporter: its instance and pod
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
    // Longer: a counter also began again if it did between its last sample and the step's begin.
    const int64_t window = (to_ms(at) - oldest) / 1000 + kLookback.count();
    GL_TRY(answer, ask_(fmt::format("resets({}[{}s])", select_series(query_, kMeterName), window), at));
    std::map<BillNode, Presence> found;
    for (const BillSeries& series : answer) {
      Presence& one = found[node_of(series)];
      one.matchers = matchers_of(series);
      // A replaced pod has a new series, so resets() does not see its counter restart.
      one.places.insert(std::string(series.label("instance")) + '\n' + std::string(series.label("pod")));
      one.began_again = one.began_again || series.samples.back().value > 0 || one.places.size() > 1;
    }
    return found;
  }

  static bool fell(const BillBooks::Node& node, const NodeReading& reading) {
    return std::any_of(reading.gpus.begin(), reading.gpus.end(), [&](const auto& gpu) {
      const auto books = node.gpus.find(gpu.first);
      return books != node.gpus.end() && books->second.fell(gpu.second);
    });
  }

  static bool lost_a_gpu(const BillBooks::Node& node, const NodeReading& reading) {
    return std::any_of(node.gpus.begin(), node.gpus.end(), [&](const auto& gpu) {
      return gpu.second.last_at_ms() >= node.last_ms && !reading.gpus.contains(gpu.first);
    });
  }

  // After a long time without a reading, a counter can be higher although it restarted: all scrapes since are read.
  static bool restarted(const BillBooks::Node& node, const NodeReading& reading) {
    const auto started = reading.run().started_ms;
    if (!started) return false;
    return node.started_ms ? *started != *node.started_ms
                           : *started > node.last_ms - std::chrono::milliseconds(kLookback).count();
  }

  Status open(const NodeReading& reading) {
    BillBooks::Node& node = books_.nodes[reading.node];
    node.matchers = reading.matchers;
    node.first_ms = node.last_ms = reading.at_ms;
    node.started_ms = reading.run().started_ms;
    for (const auto& [uuid, gpu] : reading.gpus) node.gpus[uuid].open(gpu, reading.at_ms, reading.run());
    return ok_status();
  }

  void take(const NodeReading& reading) {
    BillBooks::Node& node = books_.nodes[reading.node];
    const ExporterRun run = reading.run();
    bool noted = false;
    for (const auto& [uuid, gpu] : reading.gpus) {
      const auto known = node.gpus.find(uuid);
      if (known == node.gpus.end()) {
        take_new_gpu(reading, uuid, gpu, node);
        continue;
      }
      const int64_t last = known->second.last_at_ms();
      const auto step =
          known->second.advance(gpu, reading.at_ms, run, co2e_.grams_per_microjoule(reading.node), books_.facts);
      if (step == GpuBooks::Step::kWentOn || noted) continue;
      note_loss(reading, step, last, run.started_ms.value_or(reading.at_ms));
      noted = true;
    }
    node.last_ms = std::max(node.last_ms, reading.at_ms);
    if (run.started_ms) node.started_ms = run.started_ms;
    node.matchers = reading.matchers;
  }

  void take_new_gpu(const NodeReading& reading, const std::string& uuid, const GpuReading& gpu, BillBooks::Node& node) {
    GpuBooks& books = node.gpus[uuid];
    if (GpuBooks::may_have_begun(gpu, node.last_ms, reading.at_ms)) {
      books.open_at_zero(node.last_ms, reading.run());
      (void)books.advance(gpu, reading.at_ms, reading.run(), co2e_.grams_per_microjoule(reading.node), books_.facts);
      return;
    }
    books.open(gpu, reading.at_ms, reading.run());
    add_gap(query_, books_, reading.node.text() + " " + uuid, to_ms(query_.span.begin), reading.at_ms,
            "this GPU was first seen with counters of an earlier time");
  }

  // What an exporter spent between its last scrape and its end is in no counter.
  void note_loss(const NodeReading& reading, GpuBooks::Step step, int64_t last, int64_t started) {
    const bool again = step == GpuBooks::Step::kBeganAgain;
    // Its clock may have been ahead when it started.
    const int64_t until = again ? std::clamp(started, std::min(last, reading.at_ms), reading.at_ms) : reading.at_ms;
    const std::string why = again ? "restarted without --state-file" : "restarted with an older state file";
    if (!add_gap(query_, books_, reading.node.text(), last, until, why)) {
      books_.remarks.push_back(fmt::format("{}: {} at {}; what it used in the {:.0f} s before is in no counter",
                                           reading.node.text(), why, time_text(from_ms(until)),
                                           static_cast<double>(until - last) / 1000));
    }
  }

  Status follow(const BillNode& name, int64_t from, int64_t to) {
    GL_TRY(all, scrapes_.between(name, books_.nodes[name].matchers, from, to));
    for (const NodeReading& reading : all) take(reading);
    return ok_status();
  }

  // First seen within the span: its counters begin at 0 if its exporter did too, and it was not seen before. `seen`
  // is null if it has gone again.
  Status take_newcomer(const BillNode& name, const std::string& matchers, const NodeReading* seen, sys_seconds before,
                       sys_seconds at) {
    GL_TRY(all, scrapes_.between(name, matchers, to_ms(before), to_ms(at)));
    if (all.empty() && seen == nullptr) return ok_status();  // it was gone before the step began
    if (all.empty()) all.push_back(*seen);
    const NodeReading& first = all.front();
    const auto started = first.run().started_ms;
    const bool earlier = before_.has(name);
    const bool begins_here = started && *started >= to_ms(query_.span.begin) &&
                             std::all_of(first.gpus.begin(), first.gpus.end(), [&](const auto& gpu) {
                               return GpuBooks::may_have_begun(gpu.second, *started, first.at_ms);
                             });
    if (begins_here) {
      BillBooks::Node& node = books_.nodes[first.node];
      node.matchers = first.matchers;
      node.first_ms = first.at_ms;
      node.last_ms = *started;
      for (const auto& [uuid, gpu] : first.gpus) node.gpus[uuid].open_at_zero(*started, first.run());
      take(first);
    } else {
      GL_TRY_STATUS(open(first));
    }
    if (!begins_here || earlier) {
      const std::string why = earlier ? "not seen at the begin, although it was seen the day before"
                                      : "first seen with counters of an earlier time";
      const int64_t until = begins_here ? *started : first.at_ms;
      if (!add_gap(query_, books_, first.node.text(), to_ms(query_.span.begin), until, why)) {
        books_.remarks.push_back(
            fmt::format("{}: first seen at {}; what it used in the {} s before is not on this bill", first.node.text(),
                        time_text(from_ms(until)), (until - to_ms(query_.span.begin)) / 1000));
      }
    }
    for (size_t i = 1; i < all.size(); ++i) take(all[i]);
    if (seen != nullptr) take(*seen);
    return ok_status();
  }

  // Nodes and GPUs that are not there at the end.
  Status follow_the_gone() {
    const int64_t end = to_ms(query_.span.end);
    for (auto& [name, node] : books_.nodes) {
      if (node.last_ms < end) {
        const int64_t until = std::max(node.present_ms, node.last_ms + query_.step.count() * 1000);
        GL_TRY_STATUS(follow(name, node.last_ms, std::min(end, until)));
        if (!add_gap(query_, books_, name.text(), node.last_ms, end, "not seen any more")) {
          books_.remarks.push_back(
              fmt::format("{}: last seen at {}; what it used in the {} s after is not on this bill", name.text(),
                          time_text(from_ms(node.last_ms)), (end - node.last_ms) / 1000));
        }
        continue;
      }
      for (const auto& [uuid, gpu] : node.gpus) {
        if (gpu.last_at_ms() < node.last_ms) {
          add_gap(query_, books_, name.text() + " " + uuid, gpu.last_at_ms(), end, "this GPU is not seen any more");
        }
      }
    }
    return ok_status();
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
};

}  // namespace

Result<BillBooks> collect_books(const BillAsk& ask, const BillQuery& query, const BillProgress& progress) {
  return Collector(ask, query).run(progress);
}

}  // namespace gpuledger::app
