// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocations.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/bill/amounts.h"
#include "app/bill/gaps.h"

namespace gpuledger::app {
namespace {

// By Kubernetes to containers, and by Slurm to jobs.
const std::string kGiven[] = {"gpu_ledger_allocation_info", "gpu_ledger_slurm_allocation_info"};
const std::string kIdle[] = {"gpu_ledger_allocation_idle_seconds", "gpu_ledger_slurm_allocation_idle_seconds"};
constexpr int kIdleAfterSeconds = 60;
constexpr double kSecondsPerHour = 3600;

double most(const std::vector<double>& counts) {
  return *std::max_element(counts.begin(), counts.end());
}

}  // namespace

// How many there are. Servers differ in which are within a range; steps of the same form have as many.
Result<double> BillAllocations::count_looks(const BillSpan& step, const Looks& looks) {
  const std::pair form(looks.length, step.end.time_since_epoch().count() % looks.seconds);
  if (const auto known = looks_by_form_.find(form); known != looks_by_form_.end()) return known->second;
  GL_TRY(answer, ask_(fmt::format("count_over_time(vector(1){})", looks.range), step.end));
  const double count = answer.empty() ? -1 : answer.front().samples.back().value;
  if (!(count >= 0 && count <= static_cast<double>(looks.length + 1)))
    return Error{Code::kMalformed, "the server does not count the looks of a subquery"};
  return looks_by_form_[form] = count;
}

BillAllocations::Held BillAllocations::held_by(const BillSeries& series) {
  std::string part;
  for (const char* const label : {"mig_uuid", "container", "resource"}) {
    part.append(series.own_label(label)).append("\n");
  }
  // A time slice of the GPU, unless the meters have that one too: then it is the name of a server.
  const std::string replica(series.own_label("replica"));
  const bool of_server = series.label("exported_replica").empty() && books_.facts.server_replicas.contains(replica);
  if (!of_server) part.append(replica);
  const bool of_job = !series.own_label(kSlurmJobIdField.name).empty();
  const std::string owner = of_job ? allocated_job(series, books_.facts) : allocated_pod(series, books_.facts);
  return {{node_of(series), owner, std::string(series.own_label("uuid"))}, part};
}

Result<BillAllocations::Counts> BillAllocations::count(const std::string& query, const BillSpan& step,
                                                       const Looks& looks) {
  GL_TRY(answer, ask_(query, step.end));
  Counts counts;
  for (const BillSeries& series : answer) {
    const double seen = series.samples.back().value;
    if (!(seen >= 0) || seen > static_cast<double>(looks.length + 1)) {
      return Error{Code::kMalformed, "an allocation was seen " + std::to_string(seen) + " times in " +
                                         std::to_string(looks.length) + " s: " + series.text()};
    }
    const Held held = held_by(series);
    counts[held].push_back(seen);
    matchers_[held.first.node] = matchers_of(series);
  }
  return counts;
}

Status BillAllocations::read(const BillSpan& step) {
  Looks looks;
  looks.length = (step.end - step.begin).count();
  looks.seconds = looks.length >= 600 ? 60 : std::max<int64_t>(1, looks.length / 10);
  looks.range = looks_range(looks.length, looks.seconds);
  GL_TRY(given,
         count(fmt::format("sum_over_time({}{})", select_names(kGiven, query_.match), looks.range), step, looks));
  if (given.empty() && nodes_.empty()) return ok_status();
  GL_TRY(all_looks, count_looks(step, looks));
  for (const auto& [held, counts] : given) nodes_.try_emplace(held.first.node);
  GL_TRY(meters, ask_(fmt::format("count_over_time({}{})", select_series(query_, kMeterName), looks.range), step.end));
  std::map<BillNode, double> seen;
  for (const BillSeries& series : meters) {
    double& times = seen[node_of(series)];
    times = std::max(times, series.samples.back().value);
  }
  std::set<BillNode> unclear;
  for (const auto& [name, node] : nodes_) {
    if (seen[name] < all_looks || node.hole_seconds > 0) unclear.insert(name);
  }
  std::set<Held> holders;
  for (const auto& [held, counts] : given) holders.insert(held);
  const Slices slices = count_slices(holders);
  // Copies of a series, as by two servers, count once; but each server may have missed something. Those who share a GPU
  // need not hold it all the time.
  for (const auto& [held, counts] : given) {
    const bool missed = counts.size() > 1 && most(counts) < seen[held.first.node];
    const auto shared = slices.find(shared_by(held));
    if (missed || (shared != slices.end() && shared->second > 1)) unclear.insert(held.first.node);
  }
  for (const auto& [held, counts] : given) {
    if (!unclear.contains(held.first.node)) add_time(held, most(counts) * static_cast<double>(looks.seconds), slices);
  }
  for (auto& [name, node] : nodes_) {
    if (!unclear.contains(name)) {
      node = {};  // who held what at its end is asked for if a hole follows
    } else if (node.known && seen[name] == 0) {
      node.hole_seconds += static_cast<int64_t>(all_looks) * looks.seconds;
    } else {
      GL_TRY_STATUS(look_closely(name, node, step, looks));
    }
  }
  return read_unused(step, looks);
}

Status BillAllocations::read_unused(const BillSpan& step, const Looks& looks) {
  const std::string idle = fmt::format("({} >= bool {})", select_names(kIdle, query_.match), kIdleAfterSeconds);
  GL_TRY(unused, count(fmt::format("sum_over_time({}{})", idle, looks.range), step, looks));
  for (const auto& [held, counts] : unused) {
    BillBooks::AllocationKey key = held.first;
    key.period = books_.period;
    if (!held_.contains(key)) continue;
    unused_[key] += most(counts) * static_cast<double>(looks.seconds);
  }
  return ok_status();
}

Status BillAllocations::look_closely(const BillNode& name, Node& node, const BillSpan& step, const Looks& looks) {
  // One look more, if it is not known who held a GPU before the step.
  const std::string range = looks_range(looks.length + (node.known ? 0 : looks.seconds), looks.seconds);
  const std::string& matchers = matchers_[name];
  GL_TRY(times, ask_("vector(1)" + range, step.end));
  GL_TRY(meters, ask_(select_series(query_, kMeterName, matchers) + range, step.end));
  GL_TRY(given, ask_(select_names(kGiven, match_with(query_, matchers)) + range, step.end));
  std::set<int64_t> seen;
  for (const BillSeries& series : meters) {
    if (node_of(series) != name) continue;
    for (const BillSeries::Sample& sample : series.samples) seen.insert(sample.at_ms);
  }
  std::map<int64_t, std::set<Held>> held;
  for (const BillSeries& series : given) {
    if (node_of(series) != name) continue;
    for (const BillSeries::Sample& sample : series.samples) held[sample.at_ms].insert(held_by(series));
  }
  if (times.empty()) return ok_status();
  for (const BillSeries::Sample& time : times.front().samples) {
    const bool within = time.at_ms > to_ms(step.begin);
    if (!seen.contains(time.at_ms) || settles(node, held[time.at_ms], time.at_ms)) {
      if (!within) continue;
      node.hole_seconds += looks.seconds;
      for (const Held& one : held[time.at_ms]) node.seconds_back[one] += looks.seconds;
      continue;
    }
    const std::set<Held>& now = held[time.at_ms];
    if (node.hole_seconds > 0) pass_hole(name, node, now, time.at_ms);
    if (within) {
      const Slices slices = count_slices(now);
      for (const Held& one : now) add_time(one, static_cast<double>(looks.seconds), slices);
    }
    node = {true, now, time.at_ms, 0, 0};
  }
  return ok_status();
}

// An exporter that just started may not have asked the kubelet yet.
bool BillAllocations::settles(Node& node, const std::set<Held>& now, int64_t at_ms) {
  constexpr int64_t kPatienceMs = 120'000;
  if (!node.known || node.hole_seconds == 0) return false;
  if (node.back_ms == 0) node.back_ms = at_ms;
  const bool all_back = std::includes(now.begin(), now.end(), node.held.begin(), node.held.end());
  return !all_back && at_ms - node.back_ms < kPatienceMs;
}

void BillAllocations::pass_hole(const BillNode& name, const Node& node, const std::set<Held>& now, int64_t at_ms) {
  int64_t from = node.seen_ms;
  const Slices slices = count_slices(now);
  if (node.known) {
    for (const Held& one : node.held) {
      if (now.contains(one)) add_time(one, static_cast<double>(node.hole_seconds), slices);
    }
    for (const auto& [one, seconds] : node.seconds_back) {
      if (!node.held.contains(one) || !now.contains(one)) add_time(one, static_cast<double>(seconds), slices);
    }
    if (node.held == now) return;
    at_ms = node.back_ms;
  } else {
    from = at_ms - node.hole_seconds * 1000;
    const auto metered = books_.nodes.find(name);
    // An exporter may be some seconds older than its first scrape.
    const bool is_new = metered == books_.nodes.end() || metered->second.first_ms >= from;
    if (is_new || now.empty()) return;
  }
  name_unknown(name, from, at_ms);
}

void BillAllocations::finish() {
  const int64_t end = to_ms(query_.span.end);
  for (const auto& [name, node] : nodes_) {
    if (!node.known || node.hole_seconds == 0) continue;
    const auto metered = books_.nodes.find(name);
    if (node.back_ms != 0) {
      std::set<Held> now;
      for (const auto& [one, seconds] : node.seconds_back) now.insert(one);
      pass_hole(name, node, now, end);
    } else if (!node.held.empty() && metered != books_.nodes.end() && metered->second.last_ms >= end) {
      // It is back, but after the last look. If it is not back, its hours are missing anyway.
      name_unknown(name, node.seen_ms, end);
    }
  }
  for (const auto& [held, periods] : times_) book(held.first, periods);
  for (const auto& [key, seconds] : unused_) {
    if (!(held_[key] > 0)) continue;
    BillBooks::Allocation& allocation = books_.allocations[key];
    // Of slices that share an hour, the same part is unused.
    allocation.unused_hours = seconds / kSecondsPerHour * (allocation.hours * kSecondsPerHour / held_[key]);
    allocation.idleness_known = true;
  }
}

// Never more than the GPU was there: a look stands for a minute, and a node may come or go within one.
void BillAllocations::book(BillBooks::AllocationKey key, const std::map<size_t, Time>& periods) {
  double held = 0;
  for (const auto& [period, time] : periods) held += time.held;
  double scale = 1 / kSecondsPerHour;
  if (const auto node = books_.nodes.find(key.node); node != books_.nodes.end() && held > 0) {
    const auto gpu = node->second.gpus.find(key.gpu);
    if (gpu != node->second.gpus.end()) {
      const auto there_ms = static_cast<double>(gpu->second.last_at_ms() - gpu->second.first_at_ms());
      scale *= std::min(1.0, there_ms / 1000 / held);
    }
  }
  for (const auto& [period, time] : periods) {
    key.period = period;
    books_.allocations[key].hours += time.paid * scale;
  }
}

// A GPU, or a MIG instance of it: slices of it share its hour.
BillAllocations::Slices BillAllocations::count_slices(const std::set<Held>& all) const {
  Slices slices;
  if (!query_.share_allocated) return slices;
  for (const Held& one : all) ++slices[shared_by(one)];
  return slices;
}

BillAllocations::Shared BillAllocations::shared_by(const Held& held) {
  return {held.first.node, held.first.gpu, held.second.substr(0, held.second.find('\n'))};
}

void BillAllocations::name_unknown(const BillNode& name, int64_t from, int64_t to) {
  if (add_gap(query_, books_, name.text(), from, to, "its allocated hours are not known")) return;
  books_.remarks.push_back(fmt::format("allocated hours of {} are not known from {} to {}", name.text(),
                                       time_text(from_ms(from)), time_text(from_ms(to))));
}

void BillAllocations::add_time(const Held& held, double seconds, const Slices& slices) {
  const auto found = slices.find(shared_by(held));
  Time& time = times_[held][books_.period];
  time.held += seconds;
  time.paid += found == slices.end() ? seconds : seconds / static_cast<double>(found->second);
  BillBooks::AllocationKey key = held.first;
  key.period = books_.period;
  held_[key] += seconds;
}

}  // namespace gpuledger::app
