// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "app/bill/make_statement.h"

// Scrapes written by hand, and a server that answers the bill's queries from them as Prometheus does.
namespace gpuledger::app {

constexpr int64_t kBegin = 1'790'000'000;  // seconds since 1970
constexpr int64_t kHour = 3600;

struct FakeScrape {
  std::string node;
  int64_t at = 0;                                // seconds after kBegin
  double started = -1e6;                         // the exporter
  std::optional<double> opened = {};             // its books; empty: when it was started
  std::optional<double> booted = {};             // the machine; empty: a minute before the exporter was started
  double run = 1;                                // of the books
  std::map<std::string, double> opened_of = {};  // of single GPUs
  std::string cluster = "";
  std::string instance = "";  // empty: the node's name
  std::string replica = "";   // of the server that scraped it
  std::string card = "";      // the UUID of its only GPU; empty: one by node and index
  int64_t clock_ahead = 0;    // seconds by which the exporter's clock is wrong
  // Where series arrive one by one, the server may have only some of a scrape: its meters, or all but these.
  enum class Arrived { kAll, kMeters, kOthers } arrived = Arrived::kAll;
  // Without target labels. Empty: the scrape failed, and all series are stale.
  std::vector<std::pair<std::map<std::string, std::string>, double>> series = {};
  std::map<std::string, double> meters = {};

  FakeScrape& add(const std::string& name, std::map<std::string, std::string> labels, double value) {
    labels["__name__"] = name;
    series.emplace_back(std::move(labels), value);
    return *this;
  }
  FakeScrape& energy(const std::string& name, std::map<std::string, std::string> labels, const std::string& gpu,
                     double joules, bool shared) {
    labels["gpu"] = gpu;
    labels["energy_estimated"] = shared ? "true" : "false";
    meters[gpu] += joules;
    return add(name, std::move(labels), joules);
  }
  FakeScrape& pod(const std::string& name_space, const std::string& pod, double alone, double shared = 0,
                  const std::string& gpu = "0") {
    const std::map<std::string, std::string> labels = {
        {"namespace", name_space}, {"pod", pod}, {"pod_uid", pod + "-uid"}, {"container", "main"}};
    energy("gpu_ledger_pod_energy_joules_total", labels, gpu, alone, false);
    return energy("gpu_ledger_pod_energy_joules_total", labels, gpu, shared, true);
  }
  FakeScrape& pod_more(const std::string& name_space, const std::string& pod, const std::string& what, double value) {
    return add(
        "gpu_ledger_pod_" + what,
        {{"namespace", name_space}, {"pod", pod}, {"pod_uid", pod + "-uid"}, {"container", "main"}, {"gpu", "0"}},
        value);
  }
  FakeScrape& closed(const std::string& name_space, double joules, bool shared = false) {
    return energy("gpu_ledger_closed_energy_joules", {{"kind", "pod"}, {"namespace", name_space}}, "0", joules, shared);
  }
  FakeScrape& nobody(const std::string& reason, double joules, const std::string& gpu = "0") {
    meters[gpu] += joules;
    return add("gpu_ledger_device_unattributed_joules_total", {{"gpu", gpu}, {"uuid", uuid(gpu)}, {"reason", reason}},
               joules);
  }
  std::string uuid(const std::string& gpu) const { return card.empty() ? "GPU-" + cluster + node + "-" + gpu : card; }
  std::string target() const { return instance.empty() ? node : instance; }
};

// Who held a GPU from when to when, in seconds after kBegin. It is seen where its node is.
struct FakeHolding {
  std::map<std::string, std::string> labels;
  int64_t from = 0;
  int64_t to = 0;
};

class FakePrometheus {
 public:
  std::deque<FakeScrape> scrapes;
  std::vector<std::string> queries;
  std::vector<std::pair<std::map<std::string, std::string>, double>> allocations;
  std::vector<std::pair<std::map<std::string, std::string>, double>> idle_allocations;
  std::vector<FakeHolding> holdings;
  std::function<double(int64_t at)> co2e;
  std::map<std::string, int64_t> ghosts;  // nodes for which a series that ended is still shown at that time
  bool knows_starts = true;               // else somebody drops the process_ series
  bool tells_books = true;         // else the exporters are of a release that does not say when books were opened
  std::optional<int64_t> untold;   // of the scrape at that time the books' series have not arrived
  double meter_error = 0;          // joules that every meter has too many
  size_t most_series = 1'000'000;  // of an answer; above it is refused

  FakeScrape& scrape(const std::string& node, int64_t at) {
    scrapes.push_back({node, at});
    return scrapes.back();
  }

  BillAsk ask() {
    return [this](const std::string& query, std::chrono::sys_seconds at) -> Result<std::vector<BillSeries>> {
      queries.push_back(query);
      auto series = answer(query, at.time_since_epoch().count() - kBegin);
      if (series.size() > most_series) return Error{Code::kNotSupported, "too many series"};
      return series;
    };
  }

 private:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  static BillSeries series(const std::map<std::string, std::string>& labels, double value, int64_t at = 0) {
    return {Labels(labels.begin(), labels.end()), {{(kBegin + at) * 1000, value}}};
  }
  static int64_t range_of(const std::string& query) {
    std::smatch match;
    if (!std::regex_search(query, match, std::regex(R"(\[(\d+)(s|d)\])"))) return 0;
    return std::stoll(match[1]) * (match[2] == "d" ? 86400 : 1);
  }
  // The looks of a subquery, in seconds after kBegin: those of a whole multiple of its resolution.
  static std::vector<int64_t> looks_of(const std::string& query, int64_t at) {
    std::smatch match;
    if (!std::regex_search(query, match, std::regex(R"(\[(\d+)ms:(\d+)s\])"))) return {};
    const int64_t every = std::stoll(match[2]);
    std::vector<int64_t> looks;
    for (int64_t time = (kBegin + at) / every * every; time * 1000 >= (kBegin + at) * 1000 - std::stoll(match[1]);
         time -= every) {
      looks.insert(looks.begin(), time - kBegin);
    }
    return looks;
  }
  bool is_seen(const std::string& node, const std::string& replica, int64_t at) const {
    const FakeScrape* last = nullptr;
    for (const FakeScrape& one : scrapes) {
      if (one.node != node || one.replica != replica || one.at > at || one.at <= at - 300) continue;
      if (last == nullptr || one.at > last->at) last = &one;
    }
    return last != nullptr && !last->series.empty();
  }
  // As a matrix, or how often each was there.
  std::vector<BillSeries> look(const std::string& query, int64_t at) const {
    const std::vector<int64_t> looks = looks_of(query, at);
    const bool counted = query.find("_over_time") != query.npos;
    std::vector<BillSeries> out;
    const auto add = [&](const std::map<std::string, std::string>& labels, const auto& is_there) {
      BillSeries one{Labels(labels.begin(), labels.end()), {}};
      for (const int64_t time : looks) {
        if (is_there(time)) one.samples.push_back({(kBegin + time) * 1000, 1});
      }
      if (one.samples.empty()) return;
      const auto count = static_cast<double>(one.samples.size());
      if (counted) one.samples = {{(kBegin + at) * 1000, count}};
      out.push_back(std::move(one));
    };
    if (query.find("vector(1)") != query.npos) {
      add({}, [](int64_t) { return true; });
    } else if (query.find("gpu_ledger_device_energy") != query.npos) {
      std::set<std::pair<std::string, std::string>> targets;
      for (const FakeScrape& one : scrapes) targets.emplace(one.node, one.replica);
      for (const auto& [node, replica] : targets) {
        add({{"node", node}, {"replica", replica}, {"gpu", "0"}, {"uuid", "GPU-" + node + "-0"}},
            [&, node = node, replica = replica](int64_t time) {
              return !allocations.empty() || is_seen(node, replica, time);
            });
      }
    } else {
      for (const FakeHolding& one : holdings) {
        const auto label = [&](const char* name) { return one.labels.contains(name) ? one.labels.at(name) : ""; };
        add(one.labels, [&](int64_t time) {
          return time >= one.from && time <= one.to && is_seen(label("node"), label("replica"), time);
        });
      }
    }
    return out;
  }
  // Empty: all nodes.
  static std::string node_of_query(const std::string& query) {
    std::smatch match;
    return std::regex_search(query, match, std::regex(R"(node="([^"]*)\")")) ? match[1].str() : "";
  }
  // The names of a selector of several, between bars; empty: it has none.
  static std::string names_of_query(const std::string& query) {
    const std::string start = "__name__=~\"";
    const size_t begin = query.find(start);
    if (begin == query.npos) return {};
    const size_t from = begin + start.size();
    return "|" + query.substr(from, query.find('"', from) - from) + "|";
  }
  static bool selects(const std::string& names, const BillSeries& series) {
    return names.empty() || names.find("|" + std::string(series.label("__name__")) + "|") != names.npos;
  }
  // All series of a scrape, with the labels of its target.
  std::vector<BillSeries> all_of(const FakeScrape& scrape, int64_t at) const {
    std::vector<BillSeries> out;
    if (scrape.series.empty()) return out;
    const auto add = [&](std::map<std::string, std::string> labels, double value) {
      const bool is_meter = labels["__name__"] == "gpu_ledger_device_energy_joules_total";
      if (scrape.arrived == (is_meter ? FakeScrape::Arrived::kOthers : FakeScrape::Arrived::kMeters)) return;
      labels["node"] = scrape.node;
      labels["instance"] = scrape.target();
      if (!scrape.replica.empty()) labels["replica"] = scrape.replica;
      if (!scrape.cluster.empty()) labels["cluster"] = scrape.cluster;
      out.push_back(series(labels, value, at));
    };
    for (const auto& [labels, value] : scrape.series) add(labels, value);
    for (const auto& [gpu, joules] : scrape.meters) {
      const std::string uuid = scrape.uuid(gpu);
      add({{"__name__", "gpu_ledger_device_energy_joules_total"}, {"gpu", gpu}, {"uuid", uuid}}, joules + meter_error);
      add({{"__name__", "gpu_ledger_device_info"}, {"gpu", gpu}, {"uuid", uuid}, {"model", gpu == "1" ? "L4" : "H200"}},
          1);
      if (!tells_books || scrape.at == untold) continue;
      add({{"__name__", "gpu_ledger_books_opened_timestamp_seconds"}, {"gpu", gpu}, {"uuid", uuid}},
          static_cast<double>(kBegin) +
              (scrape.opened_of.contains(gpu) ? scrape.opened_of.at(gpu) : scrape.opened.value_or(scrape.started)));
      add({{"__name__", "gpu_ledger_books_run"}, {"gpu", gpu}, {"uuid", uuid}}, scrape.run);
    }
    if (tells_books) {
      add({{"__name__", "gpu_ledger_node_boot_timestamp_seconds"}},
          static_cast<double>(kBegin) + scrape.booted.value_or(scrape.started - 60));
    }
    add({{"__name__", "gpu_ledger_snapshot_timestamp_seconds"}},
        static_cast<double>(kBegin + scrape.at + scrape.clock_ahead));
    if (knows_starts) add({{"__name__", "process_start_time_seconds"}}, static_cast<double>(kBegin) + scrape.started);
    return out;
  }
  // What a target shows at a time: its last scrape, and of one that is there in part the rest of the one before.
  std::vector<BillSeries> shown(const std::vector<const FakeScrape*>& all, int64_t at) const {
    std::vector<BillSeries> out;
    for (auto one = all.rbegin(); one != all.rend() && at - (*one)->at < 300; ++one) {
      for (BillSeries& series : all_of(**one, at)) {
        const bool known = one != all.rbegin() && std::any_of(out.begin(), out.end(), [&](const auto& other) {
                             return other.labels == series.labels;
                           });
        if (!known) out.push_back(std::move(series));
      }
      if ((*one)->arrived == FakeScrape::Arrived::kAll) break;
    }
    return out;
  }

  std::vector<BillSeries> answer(const std::string& query, int64_t at) const {
    if (query.starts_with("avg_over_time((co2e)")) {
      double sum = 0;
      const auto looks = looks_of(query, at);
      for (const int64_t time : looks) sum += co2e(time);
      return {series({}, sum / static_cast<double>(looks.size()), at)};
    }
    if (query.starts_with("co2e")) return {series({}, co2e(at), at)};
    if (query.starts_with("sum_over_time")) {
      const bool idle = query.find("idle") != query.npos;
      std::vector<BillSeries> out;
      if (!idle) out = look(query, at);
      for (const auto& [labels, value] : idle ? idle_allocations : allocations) out.push_back(series(labels, value));
      return out;
    }
    if (!looks_of(query, at).empty()) return look(query, at);
    std::map<std::string, std::vector<const FakeScrape*>> by_target;
    const std::string node = node_of_query(query), names = names_of_query(query);
    for (const FakeScrape& one : scrapes) {
      if (one.at <= at && (node.empty() || node == one.node)) by_target[one.target() + one.replica].push_back(&one);
    }
    std::vector<BillSeries> out;
    const int64_t range = range_of(query);
    for (auto& [target, all] : by_target) {
      std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->at < b->at; });
      if (range == 0) {
        if (query.starts_with("process_start_time_seconds")) {
          for (BillSeries& one : shown(all, at)) {
            if (one.label("__name__") == "process_start_time_seconds" && knows_starts) out.push_back(std::move(one));
          }
          continue;
        }
        for (BillSeries& one : shown(all, at)) {
          if (selects(names, one)) out.push_back(std::move(one));
        }
        const auto ghost = ghosts.find(target);
        if (ghost != ghosts.end() && ghost->second == at) {
          FakeScrape old{target, at};
          old.pod("team", "ended", 1000);
          for (BillSeries& one : all_of(old, at)) {
            if (one.label("__name__") == "gpu_ledger_pod_energy_joules_total") out.push_back(std::move(one));
          }
        }
        continue;
      }
      std::erase_if(all, [&](const FakeScrape* one) { return one->at < at - range; });
      if (query.starts_with("{")) {
        for (const FakeScrape* one : all) {
          for (BillSeries& each : all_of(*one, one->at)) {
            if (selects(names, each)) out.push_back(std::move(each));
          }
        }
      } else if (query.starts_with("last_over_time")) {
        std::map<Labels, BillSeries> last;
        for (const FakeScrape* one : all) {
          for (BillSeries& each : all_of(*one, at)) {
            if (selects(names, each)) last.insert_or_assign(each.labels, each);
          }
        }
        for (auto& [labels, each] : last) out.push_back(std::move(each));
      } else if (!all.empty()) {
        out.push_back(series({{"node", all[0]->node}, {"cluster", all[0]->cluster}, {"instance", target}},
                             has_reset(all) ? 1 : 0));
      }
    }
    return out;
  }
  static bool has_reset(const std::vector<const FakeScrape*>& all) {
    std::map<std::string, double> last;
    for (const FakeScrape* one : all) {
      for (const auto& [gpu, joules] : one->meters) {
        if (last.contains(gpu) && joules < last[gpu]) return true;
        last[gpu] = joules;
      }
    }
    return false;
  }
};

}  // namespace gpuledger::app
