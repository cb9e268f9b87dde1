// SPDX-License-Identifier: Apache-2.0
#include "app/bill/scrapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "app/bill/amounts.h"

namespace gpuledger::app {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

// Of several copies of a node's scrape, as by a pair of servers or a pod that was just replaced, the newest. One of
// them may not have seen yet that a GPU was lost.
Result<std::map<BillNode, NodeReading>> newest(std::vector<NodeReading> readings) {
  std::map<BillNode, NodeReading> chosen;
  for (NodeReading& reading : readings) {
    const auto [place, fresh] = chosen.try_emplace(reading.node, reading);
    if (fresh) continue;
    NodeReading& other = place->second;
    if (other.gpus.empty() || reading.gpus.empty()) {
      if (other.gpus.empty()) other = std::move(reading);
      continue;
    }
    const bool one_node = other.instance == reading.instance ||
                          std::any_of(reading.gpus.begin(), reading.gpus.end(),
                                      [&](const auto& gpu) { return other.gpus.contains(gpu.first); });
    if (!one_node || !other.snapshot_ms || !reading.snapshot_ms) {
      const std::string two = other.instance == reading.instance
                                  ? "the node " + reading.node.text() + " is there twice"
                                  : "two exporters, " + other.instance + " and " + reading.instance +
                                        ", say they are the node " + reading.node.text();
      return Error{Code::kMalformed, two + "; give them different labels node or cluster, or choose one with --match"};
    }
    if (*reading.snapshot_ms > *other.snapshot_ms) other = std::move(reading);
  }
  return chosen;
}

// One exporter that two jobs scrape under two names would be billed twice. A UUID alone does not tell: simulated GPUs
// have those of others.
Status check_names(const std::map<BillNode, NodeReading>& readings) {
  using Run = std::pair<std::optional<int64_t>, std::optional<int64_t>>;
  std::map<std::pair<std::string, Run>, const BillNode*> names;
  for (const auto& [name, reading] : readings) {
    for (const auto& [uuid, gpu] : reading.gpus) {
      const Run run = gpu.opened_ms ? Run(gpu.opened_ms, gpu.run) : Run(reading.started_ms, {});
      const auto [place, fresh] = names.try_emplace({uuid, run}, &name);
      if (fresh) continue;
      return Error{Code::kMalformed, uuid + " is there as node " + place->second->text() + " and as node " +
                                         name.text() + "; choose one with --match"};
    }
  }
  return ok_status();
}

// What it lacks, or by how much its accounts differ from a meter.
Status check_whole(const NodeReading& reading) {
  if (!reading.lacks.empty()) return Error{Code::kMalformed, reading.lacks};
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

// By the server's time: an exporter's clock may be wrong after a boot. Where two servers scrape it, their clocks may
// differ, and its own counts.
void sort_by_time(std::vector<NodeReading>& readings) {
  const auto by = [&](auto time_of) {
    std::stable_sort(readings.begin(), readings.end(),
                     [&](const auto& a, const auto& b) { return time_of(a) < time_of(b); });
  };
  by([](const NodeReading& reading) { return reading.at_ms; });
  std::set<std::string> ended;
  bool by_turns = false;
  for (size_t i = 1; i < readings.size(); ++i) {
    if (readings[i].copy == readings[i - 1].copy) continue;
    ended.insert(readings[i - 1].copy);
    by_turns = by_turns || ended.contains(readings[i].copy);
  }
  if (!by_turns) return;
  by([](const NodeReading& reading) { return reading.snapshot_ms.value_or(reading.at_ms); });
}

}  // namespace

Status BillScrapes::read_infos(const BillSpan& step) {
  const seconds length = step.end - step.begin + kLookback;
  GL_TRY(answer, ask_(fmt::format("last_over_time({}[{}s])", info_selector(query_.match), length.count()), step.end));
  for (const BillSeries& series : answer) {
    const SeriesMeaning* meaning = meaning_of(series.label("__name__"));
    if (meaning != nullptr) read_facts(series, *meaning, false, facts_);
  }
  return ok_status();
}

// What is too much for the server or for us is asked for in parts.
Result<std::vector<BillSeries>> BillScrapes::ask_for_all(Pieces& pieces, const std::string& matchers,
                                                         const std::string& range, sys_seconds at) {
  std::vector<BillSeries> all;
  for (size_t i = 0; i < pieces.size();) {
    std::vector<std::string>& names = pieces[i];
    auto answer = ask_(select_names(names, matchers) + range, at);
    if (answer.ok()) {
      std::move(answer->begin(), answer->end(), std::back_inserter(all));
      ++i;
      continue;
    }
    if (answer.error().code != Code::kNotSupported || names.size() < 2) return answer.error();
    const auto half = names.begin() + static_cast<std::ptrdiff_t>(names.size() / 2);
    std::vector<std::string> rest(half, names.end());
    names.erase(half, names.end());
    pieces.push_back(std::move(rest));
  }
  return all;
}

Result<std::map<BillNode, NodeReading>> BillScrapes::last(sys_seconds at) {
  GL_TRY(answer, ask_for_all(pieces_, query_.match, "", at));
  GL_TRY(starts, ask_(start_selector(query_.match), at));
  for (BillSeries& series : starts) {
    const SeriesMeaning* meaning = meaning_of(series.label("__name__"));
    if (meaning != nullptr && meaning->what == SeriesMeaning::What::kStartTime) answer.push_back(std::move(series));
  }
  GL_TRY(all, read_nodes(answer, facts_));
  GL_TRY(readings, newest(std::move(all)));
  for (auto& [name, reading] : readings) GL_TRY_STATUS(make_exact(reading, at));
  GL_TRY_STATUS(check_names(readings));
  return readings;
}

// A server without marks for series that ended shows them for five more minutes, and one that has a part of the newest
// scrape shows the rest of the one before. Then the newest whole scrape is taken, with all GPUs if there is such a one.
Status BillScrapes::make_exact(NodeReading& reading, sys_seconds at) {
  reading.at_ms = to_ms(at);
  const Status whole = check_whole(reading);
  if (whole.ok()) return ok_status();
  GL_TRY(all, between(reading.node, reading.matchers, to_ms(at - kLookback), to_ms(at)));
  if (all.empty()) return whole.error();
  const auto with_all = std::find_if(all.rbegin(), all.rend(), [&](const NodeReading& one) {
    return std::all_of(reading.gpus.begin(), reading.gpus.end(),
                       [&](const auto& gpu) { return one.gpus.contains(gpu.first); });
  });
  reading = std::move(with_all == all.rend() ? all.back() : *with_all);
  reading.at_ms = to_ms(at);
  return ok_status();
}

Result<std::vector<NodeReading>> BillScrapes::between(const BillNode& name, const std::string& matchers, int64_t from,
                                                      int64_t to) {
  constexpr size_t kFew = 2;
  std::vector<NodeReading> all;
  const int64_t step = query_.step.count() * 1000;
  for (int64_t begin = from; begin < to; begin += step) {
    const int64_t end = std::min(begin + step, to);
    const auto at = sys_seconds(std::chrono::ceil<seconds>(std::chrono::milliseconds(end)));
    const int64_t range = (to_ms(at) - begin + 999) / 1000;
    GL_TRY(answer, ask_for_all(node_pieces_, match_with(query_, matchers), fmt::format("[{}s]", range), at));
    GL_TRY(readings, read_nodes(answer, facts_, false));
    for (NodeReading& reading : readings) {
      if (reading.node == name && reading.at_ms > begin && reading.at_ms <= end) all.push_back(std::move(reading));
    }
  }
  sort_by_time(all);
  std::vector<NodeReading> whole;
  for (NodeReading& reading : all) {
    const Status checked = check_whole(reading);
    if (checked.ok()) {
      whole.push_back(std::move(reading));
    } else if (whole.empty() && &reading == &all.back() && all.size() > kFew) {
      return checked.error();  // it is always so
    } else {
      in_part_[name].insert(reading.at_ms);
    }
  }
  return whole;
}

std::vector<std::string> BillScrapes::remarks() const {
  std::vector<std::string> out;
  for (const auto& [name, times] : in_part_) {
    const bool one = times.size() == 1;
    out.push_back(fmt::format("{}: {} there only in part, {}at {}; {} used", name.text(),
                              one ? "1 scrape was" : fmt::format("{} scrapes were", times.size()),
                              one ? "" : "the last ", time_text(from_ms(*times.rbegin())),
                              one ? "the one before is" : "the ones before are"));
  }
  return out;
}

}  // namespace gpuledger::app
