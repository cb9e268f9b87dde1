// SPDX-License-Identifier: Apache-2.0
#include "app/top/rows.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace gpuledger::app::top {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

// The containers of a pod are one owner here.
auto owner_key(const Books::Account& account) {
  return std::tuple(account.owner_kind, account.owner, account.pod_uid);
}

// A process whose owner or container became known later has an account for each.
auto process_key(const Books::Process& process) {
  return std::tuple_cat(owner_key(process), std::tuple(process.container, process.gpu_uuid, process.mig_uuid,
                                                       process.pid, process.started));
}

// One account of an owner: a container of it, on one GPU.
auto account_key(const Books::Account& account) {
  return std::tuple_cat(owner_key(account), std::tuple(account.container, account.container_id, account.gpu_uuid));
}

// Empty: the books before are not of the same run, or its clock was set.
std::optional<double> seconds_between(const Books& now, const Books* before) {
  if (before == nullptr || now.at <= before->at || now.cycle <= before->cycle) return std::nullopt;
  return now.at - before->at;
}

// The GPUs whose joules since the books before are known. Those of a lost GPU are unknown, not 0.
std::set<std::string> measured_gpus(const Books& now, const Books* before) {
  const auto known = [](const Books::Gpu& gpu) { return gpu.up && (gpu.watts || !gpu.integrates); };
  std::set<std::string> then, both;
  if (before == nullptr) return both;
  for (const Books::Gpu& gpu : before->gpus) {
    if (known(gpu)) then.insert(gpu.uuid);
  }
  for (const Books::Gpu& gpu : now.gpus) {
    if (known(gpu) && then.contains(gpu.uuid)) both.insert(gpu.uuid);
  }
  return both;
}

// A counter that fell belongs to another run of the exporter.
std::optional<double> power(double joules, double joules_before, std::optional<double> seconds) {
  return seconds && joules >= joules_before ? std::optional((joules - joules_before) / *seconds) : std::nullopt;
}

// The relative error of the new shared joules is taken from all its shared joules. Joules used alone have no error.
double power_error(const Books::Account& now, double shared_before, std::optional<double> seconds) {
  if (!seconds || now.shared_joules <= 0) return 0;
  return now.error_joules / now.shared_joules * std::max(0.0, now.shared_joules - shared_before) / *seconds;
}

bool is_on(const View& view, const Books::Account& account) {
  return !view.gpu || account.gpu == *view.gpu;
}

std::vector<Row> process_rows(const Books& now, const Books* before, const View& view) {
  const auto seconds = seconds_between(now, before);
  const std::set<std::string> measured = measured_gpus(now, before);
  std::map<decltype(process_key(Books::Process())), Books::Account> booked;
  if (seconds) {
    for (const Books::Process& process : before->processes) booked[process_key(process)] = process;
  }
  std::vector<Row> rows;
  for (const Books::Process& process : now.processes) {
    if (!is_on(view, process)) continue;
    Row& row = rows.emplace_back();
    row.gpu = process.gpu;
    row.pid = process.pid;
    row.active = process.active;
    if (process.active) {
      if (measured.contains(process.gpu_uuid)) {
        const Books::Account& then = booked[process_key(process)];  // a new process starts at 0
        row.watts = power(process.joules, then.joules, seconds);
        row.watts_error = power_error(process, then.shared_joules, seconds);
      }
      row.share = process.share;
      row.memory = process.memory;
      row.idle_seconds = process.idle_seconds;
    }
    row.joules = process.joules;
    row.joules_error = process.error_joules;
    row.owner = process.owner;
    row.process = process.name;
    row.search =
        lower(process.owner + "\n" + process.container + "\n" + process.name + "\n" + std::to_string(process.pid));
  }
  return rows;
}

// An owner while it is added up.
struct Sum {
  Row row;
  std::set<uint32_t> gpus;
  bool measured = false;  // on at least one GPU; the sums below are of measured GPUs
  double measured_joules = 0;
  double joules_before = 0;
  size_t active = 0;
  size_t idle = 0;
};

void add_process(const Books::Process& process, Sum& sum) {
  Row& row = sum.row;
  row.search += lower(process.name + "\n" + std::to_string(process.pid) + "\n");
  if (!process.active) return;
  row.pid = process.pid;
  row.process = process.name;
  row.active = true;
  ++sum.active;
  if (process.share) row.share = row.share.value_or(0) + *process.share;
  if (process.memory) row.memory = row.memory.value_or(0) + *process.memory;
  if (!process.idle_seconds) return;
  ++sum.idle;
  row.idle_seconds = std::min(row.idle_seconds.value_or(*process.idle_seconds), *process.idle_seconds);
}

Row finish(Sum& sum, std::optional<double> seconds) {
  Row& row = sum.row;
  row.gpus = sum.gpus.size();
  row.gpu = row.gpus == 1 ? std::optional(*sum.gpus.begin()) : std::nullopt;
  row.processes = sum.active;
  if (sum.active != 1) row.pid.reset();
  if (sum.active > 1) row.process = std::to_string(sum.active) + " processes";
  if (row.gpus > 1) row.share.reset();                  // shares of different GPUs do not add up
  if (sum.idle < sum.active) row.idle_seconds.reset();  // one of them works
  if (row.active && sum.measured) row.watts = power(sum.measured_joules, sum.joules_before, seconds);
  return std::move(row);
}

// The joules are the owners' own, which include those of processes that are gone.
std::vector<Row> owner_rows(const Books& now, const Books* before, const View& view) {
  const auto seconds = seconds_between(now, before);
  const std::set<std::string> measured = measured_gpus(now, before);
  std::map<decltype(account_key(Books::Account())), double> shared_before;
  if (seconds) {
    for (const Books::Account& account : before->owners) shared_before[account_key(account)] = account.shared_joules;
  }
  std::map<decltype(owner_key(Books::Account())), Sum> sums;
  for (const Books::Account& account : now.owners) {
    if (!is_on(view, account)) continue;
    Sum& sum = sums[owner_key(account)];
    sum.gpus.insert(account.gpu);
    sum.row.owner = account.owner;
    sum.row.search += lower(account.owner + "\n" + account.container + "\n");
    sum.row.joules += account.joules;
    sum.row.joules_error += account.error_joules;  // an upper bound: their correlation is not known here
    if (!measured.contains(account.gpu_uuid)) continue;
    sum.measured = true;
    sum.row.watts_error += power_error(account, shared_before[account_key(account)], seconds);  // likewise
    sum.measured_joules += account.joules;
  }
  if (seconds) {
    for (const Books::Account& account : before->owners) {
      const auto found = sums.find(owner_key(account));
      if (found == sums.end() || !is_on(view, account) || !measured.contains(account.gpu_uuid)) continue;
      found->second.joules_before += account.joules;
    }
  }
  for (const Books::Process& process : now.processes) {
    const auto found = sums.find(owner_key(process));
    if (found != sums.end() && is_on(view, process)) add_process(process, found->second);
  }
  std::vector<Row> rows;
  for (auto& [key, sum] : sums) rows.push_back(finish(sum, seconds));
  return rows;
}

// Who was left out before has not drawn all its joules since then. What it drew is not known: 0.
template <typename Account, typename KeyOf>
void add_missing(const std::vector<Account>& now, std::vector<Account>& before, KeyOf key_of) {
  std::set<decltype(key_of(now.front()))> known;
  for (const Account& account : before) known.insert(key_of(account));
  for (const Account& account : now) {
    if (!known.contains(key_of(account))) before.push_back(account);
  }
}

// Negative: a comes first.
template <typename Value>
int compare(const Value& a, const Value& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int compare(const Row& a, const Row& b, SortBy by) {
  switch (by) {
    case SortBy::kGpu: return compare(a.gpu, b.gpu);
    case SortBy::kPid: return compare(a.pid, b.pid);
    case SortBy::kWatts: return compare(a.watts, b.watts);
    case SortBy::kShare: return compare(a.share, b.share);
    case SortBy::kMemory: return compare(a.memory, b.memory);
    case SortBy::kEnergy: return compare(a.joules, b.joules);
    case SortBy::kIdle: return compare(a.idle_seconds, b.idle_seconds);
    case SortBy::kOwner: return compare(a.owner, b.owner);
    case SortBy::kProcess: return compare(a.process, b.process);
  }
  return 0;
}

}  // namespace

std::vector<Row> make_rows(const Books& now, const Books* before, const View& view) {
  Books completed;
  if (before != nullptr && before->some_left_out) {
    completed = *before;
    add_missing(now.processes, completed.processes, [](const auto& process) { return process_key(process); });
    add_missing(now.owners, completed.owners, [](const auto& owner) { return account_key(owner); });
    before = &completed;
  }
  std::vector<Row> rows = view.by_owner ? owner_rows(now, before, view) : process_rows(now, before, view);
  if (!view.filter.empty()) {
    const std::string wanted = lower(view.filter);
    std::erase_if(rows, [&](const Row& row) { return row.search.find(wanted) == std::string::npos; });
  }
  const bool down = sort_column(view.sort).largest_first != view.reverse;
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    if (a.active != b.active) return a.active;  // ended ones are last in any order
    const int order = compare(a, b, view.sort);
    return down ? order > 0 : order < 0;
  });
  return rows;
}

}  // namespace gpuledger::app::top
