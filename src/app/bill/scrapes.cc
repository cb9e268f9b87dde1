// SPDX-License-Identifier: Apache-2.0
#include "app/bill/scrapes.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/bill/amounts.h"

namespace gpuledger::app {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

// Of several copies of a node's scrape, as by a pair of servers or a pod that was just replaced, the newest.
Result<std::map<BillNode, NodeReading>> newest(std::vector<NodeReading> readings) {
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
      return Error{Code::kMalformed, two + "; give them different labels node or cluster, or choose one with --match"};
    }
    if (*reading.snapshot_at > *other.snapshot_at) other = std::move(reading);
  }
  return chosen;
}

// One exporter that two jobs scrape under two names would be billed twice. A UUID alone does not tell: simulated GPUs
// have those of others.
Status check_names(const std::map<BillNode, NodeReading>& readings) {
  constexpr double kUnknown = -1;
  std::map<std::pair<std::string, double>, const BillNode*> names;
  for (const auto& [name, reading] : readings) {
    for (const auto& [uuid, gpu] : reading.gpus) {
      const auto [place, fresh] = names.try_emplace({uuid, reading.started_at.value_or(kUnknown)}, &name);
      if (fresh) continue;
      return Error{Code::kMalformed, uuid + " is there as node " + place->second->text() + " and as node " +
                                         name.text() + "; choose one with --match"};
    }
  }
  return ok_status();
}

Status check_balance(const NodeReading& reading) {
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

}  // namespace

Result<std::map<BillNode, NodeReading>> BillScrapes::last(sys_seconds at) {
  GL_TRY(answer, ask_(reading_selector(query_.match, false), at));
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

// A server without marks for series that ended shows them for five more minutes. Then the scrape itself is read.
Status BillScrapes::make_exact(NodeReading& reading, sys_seconds at) {
  reading.at_ms = to_ms(at);
  const Status balanced = check_balance(reading);
  if (balanced.ok()) return ok_status();
  GL_TRY(all, between(reading.node, reading.matchers, to_ms(at - kLookback), to_ms(at)));
  if (all.empty()) return balanced.error();
  reading = std::move(all.back());
  reading.at_ms = to_ms(at);
  return ok_status();
}

Result<std::vector<NodeReading>> BillScrapes::between(const BillNode& name, const std::string& matchers, int64_t from,
                                                      int64_t to) {
  std::vector<NodeReading> all;
  const int64_t step = query_.step.count() * 1000;
  for (int64_t begin = from; begin < to; begin += step) {
    const int64_t end = std::min(begin + step, to);
    const auto at = sys_seconds(std::chrono::ceil<seconds>(std::chrono::milliseconds(end)));
    const int64_t range = (to_ms(at) - begin + 999) / 1000;
    GL_TRY(answer, ask_(fmt::format("{}[{}s]", reading_selector(match_with(query_, matchers), true), range), at));
    GL_TRY(readings, read_nodes(answer, facts_));
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

}  // namespace gpuledger::app
