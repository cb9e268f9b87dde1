// SPDX-License-Identifier: Apache-2.0
#include "app/bill/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/bill/amounts.h"

namespace gpuledger::app {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr seconds kLookback{300};  // Prometheus answers with a sample of up to five minutes before
constexpr double kMicrojoulesPerKwh = 3.6e12;
constexpr const char* kMeter = "gpu_ledger_device_energy_joules_total";
constexpr const char* kAllocation = "gpu_ledger_allocation_info";
constexpr const char* kAllocationIdle = "gpu_ledger_allocation_idle_seconds";
constexpr int kIdleAfterSeconds = 60;

int64_t ms(sys_seconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

sys_seconds from_ms(int64_t time) {
  return sys_seconds(seconds(time / 1000));
}

std::optional<int64_t> started_ms(const NodeReading& reading) {
  constexpr double kLatest = 1e11;  // nobody's clock
  if (!reading.started_at || !(*reading.started_at >= 0 && *reading.started_at < kLatest)) return std::nullopt;
  return std::llround(*reading.started_at * 1000);
}

class Collector {
 public:
  Collector(const BillAsk& ask, const BillQuery& query) : ask_(ask), query_(query) { books_.span = query.span; }

  Result<BillBooks> run(const BillProgress& progress) {
    std::vector<sys_seconds> times;
    for (sys_seconds at = query_.span.begin; at < query_.span.end; at += query_.step) times.push_back(at);
    times.push_back(query_.span.end);
    for (size_t i = 0; i < times.size(); ++i) {
      const sys_seconds before = i == 0 ? times[0] : times[i - 1];
      GL_TRY_STATUS(read_co2e(times[i]));
      GL_TRY_STATUS(read_time(before, times[i], i == 0));
      if (i > 0) GL_TRY_STATUS(read_allocations(before, times[i]));
      if (progress) progress(i + 1, times.size());
    }
    GL_TRY_STATUS(follow_the_gone());
    if (books_.nodes.empty()) {
      return Error{Code::kNotFound, std::string("the server has no ") + kMeter + " between " +
                                        time_text(query_.span.begin) + " and " + time_text(query_.span.end) +
                                        (query_.match.empty() ? "" : " with " + query_.match) +
                                        "; does it scrape gpu-ledger?"};
    }
    std::sort(books_.gaps.begin(), books_.gaps.end(), [](const BillGap& a, const BillGap& b) {
      return std::tuple(a.node, a.span.begin) < std::tuple(b.node, b.span.begin);
    });
    return std::move(books_);
  }

 private:
  std::string select(const std::string& name, const std::string& matchers) const {
    const std::string both = query_.match + (query_.match.empty() || matchers.empty() ? "" : ",") + matchers;
    return name + "{" + both + "}";
  }
  std::string match_with(const std::string& matchers) const {
    return query_.match.empty() ? matchers : query_.match + "," + matchers;
  }
  double grams(const BillNode& node) const {
    const auto found = grams_.find(node.cluster);
    const double per_kwh = found != grams_.end() ? found->second : grams_everywhere_;
    return per_kwh / kMicrojoulesPerKwh;
  }

  Status read_co2e(sys_seconds at) {
    if (query_.co2e_grams_per_kwh) grams_everywhere_ = *query_.co2e_grams_per_kwh;
    books_.has_co2e = query_.co2e_grams_per_kwh || !query_.co2e_series.empty();
    if (query_.co2e_series.empty()) return ok_status();
    GL_TRY(answer, (query_.ask_co2e ? query_.ask_co2e : ask_)(query_.co2e_series, at));
    grams_.clear();
    for (const BillSeries& series : answer) {
      const double value = series.samples.back().value;
      if (!std::isfinite(value) || value < 0) return co2e_error(at, "is not a number of grams");
      const std::string cluster(series.label("cluster"));
      if (!grams_.emplace(cluster, value).second) {
        return co2e_error(at, "has several series; make it one, or one per cluster, as with avg() or avg by (cluster)");
      }
    }
    if (grams_.empty()) return co2e_error(at, "has no value");
    if (const auto one = grams_.find(""); one != grams_.end()) grams_everywhere_ = one->second;
    co2e_by_cluster_ = !grams_.contains("");
    return ok_status();
  }
  static Error co2e_error(sys_seconds at, const std::string& what) {
    return {Code::kMalformed, "--co2e-series: it " + what + " at " + time_text(at)};
  }

  // Of several copies of a node's scrape, as by a pair of servers or a pod that was just replaced, the newest.
  Result<std::map<BillNode, NodeReading>> newest(std::vector<NodeReading> readings) const {
    std::map<BillNode, NodeReading> chosen;
    for (NodeReading& reading : readings) {
      const auto [place, fresh] = chosen.try_emplace(reading.node, reading);
      if (fresh) continue;
      NodeReading& other = place->second;
      const bool same_gpus = std::equal(other.gpus.begin(), other.gpus.end(), reading.gpus.begin(), reading.gpus.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
      if (!same_gpus || !other.snapshot_at || !reading.snapshot_at) {
        const std::string two = other.instance == reading.instance
                                    ? "the node " + reading.node.text() + " is there twice"
                                    : "two exporters, " + other.instance + " and " + reading.instance +
                                          ", say they are the node " + reading.node.text();
        return Error{Code::kMalformed,
                     two + "; give them different labels node or cluster, or choose one with --match"};
      }
      if (*reading.snapshot_at > *other.snapshot_at) other = std::move(reading);
    }
    return chosen;
  }

  static Status check_balance(const NodeReading& reading) {
    for (const auto& [uuid, gpu] : reading.gpus) {
      const Wide rest = gpu.imbalance();
      if (rest <= gpu.rounding() && rest >= -gpu.rounding()) continue;
      return Error{
          Code::kMalformed,
          fmt::format("node {} at {}: the accounts of {} differ from its meter by {:.3f} J; are series of "
                      "gpu-ledger dropped, or is its collector pod off?",
                      reading.node.text(), time_text(from_ms(reading.at_ms)), uuid, static_cast<double>(rest) / 1e6)};
    }
    return ok_status();
  }

  // A server without marks for series that ended shows them for five more minutes. Then the scrape itself is read.
  Status make_exact(NodeReading& reading, sys_seconds at) {
    reading.at_ms = ms(at);
    const Status balanced = check_balance(reading);
    if (balanced.ok()) return ok_status();
    GL_TRY(all, scrapes(reading.node, reading.matchers, ms(at - kLookback), ms(at)));
    if (all.empty()) return balanced.error();
    reading = std::move(all.back());
    reading.at_ms = ms(at);
    return ok_status();
  }

  Status read_time(sys_seconds before, sys_seconds at, bool first) {
    GL_TRY(answer, ask_(reading_selector(query_.match, false), at));
    GL_TRY(all, read_nodes(answer, books_.facts));
    GL_TRY(readings, newest(std::move(all)));
    std::map<BillNode, Presence> present;
    if (!first) {
      GL_TRY(found, presence(readings, before, at));
      present = std::move(found);
    }
    for (auto& [name, reading] : readings) {
      GL_TRY_STATUS(make_exact(reading, at));
      if (co2e_by_cluster_ && !grams_.contains(name.cluster)) {
        return co2e_error(at, "has no value for the cluster \"" + name.cluster + "\"");
      }
      const auto known = books_.nodes.find(name);
      if (known == books_.nodes.end()) {
        GL_TRY_STATUS(first ? open(reading) : take_newcomer(name, reading.matchers, &reading, before, at));
        continue;
      }
      if (present[name].began_again || fell(known->second, reading)) {
        GL_TRY_STATUS(follow(name, known->second.last_ms, ms(at)));
      }
      take(reading);
    }
    for (const auto& [name, seen] : present) {
      if (readings.contains(name)) continue;
      if (const auto known = books_.nodes.find(name); known != books_.nodes.end()) {
        known->second.present_ms = ms(at);
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
    int64_t oldest = ms(before);
    for (const auto& [name, reading] : readings) {
      if (const auto known = books_.nodes.find(name); known != books_.nodes.end()) {
        oldest = std::min(oldest, known->second.last_ms);
      }
    }
    // Longer: a counter also began again if it did between its last sample and the step's begin.
    const int64_t window = (ms(at) - oldest) / 1000 + kLookback.count();
    GL_TRY(answer, ask_(fmt::format("resets({}[{}s])", select(kMeter, ""), window), at));
    std::map<BillNode, Presence> found;
    for (const BillSeries& series : answer) {
      Presence& one = found[node_of(series)];
      one.matchers = matchers_of(series);
      // A pod that was replaced is another series: a counter of it that begins again has no reset.
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

  Status open(const NodeReading& reading) {
    BillBooks::Node& node = books_.nodes[reading.node];
    node.matchers = reading.matchers;
    node.last_ms = reading.at_ms;
    for (const auto& [uuid, gpu] : reading.gpus) node.gpus[uuid].open(gpu, reading.at_ms);
    return ok_status();
  }

  void take(const NodeReading& reading) {
    BillBooks::Node& node = books_.nodes[reading.node];
    const auto started = started_ms(reading);
    std::optional<int64_t> lost_from;
    for (const auto& [uuid, gpu] : reading.gpus) {
      const auto known = node.gpus.find(uuid);
      if (known == node.gpus.end()) {
        take_new_gpu(reading, uuid, gpu, node);
        continue;
      }
      const int64_t last = known->second.last_at_ms();
      const auto step = known->second.advance(gpu, reading.at_ms, started, grams(reading.node), books_.facts);
      if (step != GpuBooks::Step::kWentOn && !lost_from) {
        lost_from = last;
        note_loss(reading, step, last, started.value_or(reading.at_ms));
      }
    }
    node.last_ms = std::max(node.last_ms, reading.at_ms);
    node.matchers = reading.matchers;
  }

  void take_new_gpu(const NodeReading& reading, const std::string& uuid, const GpuReading& gpu, BillBooks::Node& node) {
    GpuBooks& books = node.gpus[uuid];
    if (GpuBooks::may_have_begun(gpu, node.last_ms, reading.at_ms)) {
      books.open_at_zero(node.last_ms);
      (void)books.advance(gpu, reading.at_ms, std::nullopt, grams(reading.node), books_.facts);
      return;
    }
    books.open(gpu, reading.at_ms);
    add_gap(reading.node.text() + " " + uuid, ms(query_.span.begin), reading.at_ms,
            "this GPU was first seen with counters of an earlier time");
  }

  // What an exporter spent between its last scrape and its end is in no counter.
  void note_loss(const NodeReading& reading, GpuBooks::Step step, int64_t last, int64_t started) {
    const bool again = step == GpuBooks::Step::kBeganAgain;
    const int64_t until = again ? std::max(started, last) : reading.at_ms;
    const std::string why = again ? "restarted without --state-file" : "restarted with an older state file";
    if (!add_gap(reading.node.text(), last, until, why)) {
      books_.remarks.push_back(fmt::format("{}: {} at {}; what it used in the {:.0f} s before is in no counter",
                                           reading.node.text(), why, time_text(from_ms(until)),
                                           static_cast<double>(until - last) / 1000));
    }
  }

  // True: it is long enough to be one.
  bool add_gap(const std::string& node, int64_t from, int64_t to, const std::string& why) {
    if (to - from <= std::min(query_.step, kLookback).count() * 1000) return false;
    books_.gaps.push_back({node, {from_ms(from), from_ms(to)}, why});
    return true;
  }

  // Every scrape of one node after `from`, up to `to`.
  Result<std::vector<NodeReading>> scrapes(const BillNode& name, const std::string& matchers, int64_t from,
                                           int64_t to) {
    std::vector<NodeReading> all;
    const int64_t step = query_.step.count() * 1000;
    for (int64_t begin = from; begin < to; begin += step) {
      const int64_t end = std::min(begin + step, to);
      const auto at = sys_seconds(std::chrono::ceil<seconds>(std::chrono::milliseconds(end)));
      const int64_t range = (ms(at) - begin + 999) / 1000;
      GL_TRY(answer, ask_(fmt::format("{}[{}s]", reading_selector(match_with(matchers), true), range), at));
      GL_TRY(readings, read_nodes(answer, books_.facts));
      for (NodeReading& reading : readings) {
        if (reading.node == name && reading.at_ms > begin && reading.at_ms <= end) all.push_back(std::move(reading));
      }
    }
    // By the exporter's own time: two servers' clocks may differ.
    const auto time_of = [](const NodeReading& reading) {
      return std::pair(reading.snapshot_at.value_or(static_cast<double>(reading.at_ms) / 1000), reading.at_ms);
    };
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return time_of(a) < time_of(b); });
    for (const NodeReading& reading : all) GL_TRY_STATUS(check_balance(reading));
    return all;
  }

  Status follow(const BillNode& name, int64_t from, int64_t to) {
    GL_TRY(all, scrapes(name, books_.nodes[name].matchers, from, to));
    for (const NodeReading& reading : all) take(reading);
    return ok_status();
  }

  // First seen within the span: its counters begin at 0 if its exporter did too, and nobody has seen it before. `seen`
  // is null if it has gone again.
  Status take_newcomer(const BillNode& name, const std::string& matchers, const NodeReading* seen, sys_seconds before,
                       sys_seconds at) {
    GL_TRY(all, scrapes(name, matchers, ms(before), ms(at)));
    if (all.empty() && seen == nullptr) return ok_status();  // it was gone before the step began
    if (all.empty()) all.push_back(*seen);
    const NodeReading& first = all.front();
    const auto started = started_ms(first);
    GL_TRY(earlier, ask_(fmt::format("count_over_time({}[1d])", select(kMeter, matchers)), query_.span.begin));
    const bool begins_here = started && *started >= ms(query_.span.begin) &&
                             std::all_of(first.gpus.begin(), first.gpus.end(), [&](const auto& gpu) {
                               return GpuBooks::may_have_begun(gpu.second, *started, first.at_ms);
                             });
    if (begins_here) {
      BillBooks::Node& node = books_.nodes[first.node];
      node.matchers = first.matchers;
      node.last_ms = *started;
      for (const auto& [uuid, gpu] : first.gpus) node.gpus[uuid].open_at_zero(*started);
      take(first);
    } else {
      GL_TRY_STATUS(open(first));
    }
    if (!begins_here || !earlier.empty()) {
      const std::string why = earlier.empty() ? "first seen with counters of an earlier time"
                                              : "not seen at the begin, although it was seen the day before";
      const int64_t until = begins_here ? *started : first.at_ms;
      if (!add_gap(first.node.text(), ms(query_.span.begin), until, why)) {
        books_.remarks.push_back(first.node.text() + ": first seen at " + time_text(from_ms(until)));
      }
    }
    for (size_t i = 1; i < all.size(); ++i) take(all[i]);
    if (seen != nullptr) take(*seen);
    return ok_status();
  }

  // Nodes and GPUs that are not there at the end.
  Status follow_the_gone() {
    const int64_t end = ms(query_.span.end);
    for (auto& [name, node] : books_.nodes) {
      if (node.last_ms < end) {
        const int64_t until = std::max(node.present_ms, node.last_ms + query_.step.count() * 1000);
        GL_TRY_STATUS(follow(name, node.last_ms, std::min(end, until)));
        if (!add_gap(name.text(), node.last_ms, end, "not seen any more")) {
          books_.remarks.push_back(name.text() + ": last seen at " + time_text(from_ms(node.last_ms)));
        }
        continue;
      }
      for (const auto& [uuid, gpu] : node.gpus) {
        if (gpu.last_at_ms() < node.last_ms) {
          add_gap(name.text() + " " + uuid, gpu.last_at_ms(), end, "this GPU is not seen any more");
        }
      }
    }
    return ok_status();
  }

  Status read_allocations(sys_seconds before, sys_seconds at) {
    const int64_t length = (at - before).count();
    const int64_t resolution = length >= 600 ? 60 : std::max<int64_t>(1, length / 10);
    // A millisecond less, or servers that count both ends would see one look too many.
    const std::string range = fmt::format("[{}ms:{}s]", length * 1000 - 1, resolution);
    const double hours = static_cast<double>(resolution) / 3600;
    GL_TRY(given, ask_(fmt::format("sum_over_time({}{})", select(kAllocation, ""), range), at));
    if (given.empty()) return ok_status();
    GL_TRY(idle,
           ask_(fmt::format("sum_over_time(({} >= bool {}){})", select(kAllocationIdle, ""), kIdleAfterSeconds, range),
                at));
    // A copy of a series by another server counts once.
    std::map<std::pair<BillBooks::AllocationKey, std::string>, double> looks, idle_looks;
    const auto count = [&](const std::vector<BillSeries>& answer, auto& out) -> Status {
      for (const BillSeries& series : answer) {
        const double seen = series.samples.back().value;
        if (!(seen >= 0) || seen > static_cast<double>(length + 1)) {
          return Error{Code::kMalformed, "an allocation was seen " + std::to_string(seen) + " times in " +
                                             std::to_string(length) + " s: " + series.text()};
        }
        std::string what;
        for (const char* const label : {"mig_uuid", "container", "resource", "replica"}) {
          if (books_.facts.target_labels.contains(label)) continue;  // a server's replica, not the GPU's
          what.append(series.own_label(label)).append("\n");
        }
        const BillBooks::AllocationKey key{node_of(series), allocated_pod(series, books_.facts),
                                           std::string(series.own_label("uuid"))};
        double& value = out[{key, what}];
        value = std::max(value, seen);
      }
      return ok_status();
    };
    GL_TRY_STATUS(count(given, looks));
    GL_TRY_STATUS(count(idle, idle_looks));
    for (const auto& [key, value] : looks) books_.allocations[key.first].hours += value * hours;
    for (const auto& [key, value] : idle_looks) {
      const auto allocation = books_.allocations.find(key.first);
      if (allocation == books_.allocations.end()) continue;
      allocation->second.unused_hours += value * hours;
      allocation->second.idleness_known = true;
    }
    return ok_status();
  }

  const BillAsk& ask_;
  const BillQuery& query_;
  BillBooks books_;
  std::map<std::string, double> grams_;  // CO2e per kWh of this step, by cluster
  double grams_everywhere_ = 0;
  bool co2e_by_cluster_ = false;
};

}  // namespace

Result<BillBooks> collect_books(const BillAsk& ask, const BillQuery& query, const BillProgress& progress) {
  return Collector(ask, query).run(progress);
}

}  // namespace gpuledger::app
