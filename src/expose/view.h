// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "expose/expose.h"
#include "expose/labels.h"

namespace gpuledger::expose {

// One set of labels and all values with it. If a pid is used again with the same name and owner, several
// accounts have the same labels, and Prometheus refuses duplicate series. So their counters are added up
// (and never fall), and the gauges are of the running or last process.
struct DeviceSeries;
struct ProcessSeries {
  std::string labels;
  const DeviceSeries* device = nullptr;  // null: the GPU has no account
  const ProcessAccount* newest = nullptr;
  Booked booked;
  double variance = 0;          // of booked.shared, in square joules
  std::optional<Bytes> memory;  // of running ones
  std::optional<Bytes> memory_peak;
  // With exact time. The trace has only pids, so the count is of the last process with this pid.
  std::optional<uint64_t> switches;
};

struct OwnerSeries {
  std::string labels;
  const OwnerAccount* account = nullptr;  // the first of those with these labels
  Booked booked;
  double variance = 0;               // of booked.shared, in square joules
  std::optional<Bytes> idle_memory;  // empty: idle state not known
  std::optional<Bytes> memory_peak;
  bool steps_missing = false;  // of a Slurm job: other steps have no account of their own; JSON only

  OwnerKind kind() const { return account->owner.kind; }
};

struct DeviceSeries {
  std::string labels;           // gpu, uuid
  std::string gpu_labels;       // gpu
  std::string idle_labels;      // gpu, model, uuid and the constants of gpu_idle_*
  std::string idle_gpu_labels;  // gpu and those constants
  const DeviceAccount* account = nullptr;
  const DeviceSample* sample = nullptr;  // null while the GPU is lost: its gauges are absent
  bool idle_known = false;               // the idle state of a process is known
  uint64_t listed = 0;                   // processes of the processlist collector
  Bytes idle_memory;                     // of the idle collector

  bool up() const { return sample != nullptr; }
  // Current values; all empty while the GPU is lost.
  const DeviceSample& reading() const {
    static const DeviceSample nothing;
    return up() ? *sample : nothing;
  }
};

struct AllocationSeries {
  std::string labels;
  const AllocationAccount* account = nullptr;
  bool first_of_place = true;  // false: another replica of the same GPU in the same container
  uint64_t given = 0;          // devices of the resource that the container has; 0: another of them says it
};
using PodSeries = const PodFacts*;

// Sums of owners without their own series: closed accounts, and owners that --max-series left out.
struct ClosedKey {
  uint32_t gpu_index = 0;
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;
  friend auto operator<=>(const ClosedKey&, const ClosedKey&) = default;
};

using ClosedSeries = std::pair<const ClosedKey, Booked>;

// The account that an entry of a list is about: --max-series leaves out all entries of an account, in all lists. A type
// of entry without such a function does not compile. monostate: it always stays.
struct View;
inline std::monostate account_of(const View&) {
  return {};
}
inline std::monostate account_of(const DeviceSeries&) {
  return {};
}
inline std::monostate account_of(const ClosedSeries&) {
  return {};
}
inline const ProcessAccount* account_of(const ProcessSeries& series) {
  return series.newest;
}
inline const OwnerAccount* account_of(const OwnerSeries& series) {
  return series.account;
}
inline const AllocationAccount* account_of(const AllocationSeries& series) {
  return series.account;
}
inline const PodFacts* account_of(const PodSeries& pod) {
  return pod;
}
using Account =
    std::variant<std::monostate, const ProcessAccount*, const OwnerAccount*, const AllocationAccount*, const PodFacts*>;

// A single account, without labels: for JSON, which merges nothing.
ProcessSeries series_of(const View& view, const ProcessAccount& account);
OwnerSeries series_of(const View& view, const OwnerAccount& account);

LabelText place_labels(const View& view, const Allocation& allocation);
std::string request_labels(const View& view, std::string_view name_space, std::string_view pod,
                           std::string_view container, std::string_view resource);

// Empty once the process has exited, even if the account has a value.
inline std::optional<double> ratio_of(const ProcessSeries& series, const std::optional<Ratio>& ratio) {
  return ratio && series.newest->active ? std::optional(ratio->value) : std::nullopt;
}
// Empty if neither is known.
inline std::optional<Bytes> higher(const std::optional<Bytes>& a, const std::optional<Bytes>& b) {
  return std::max(a, b);
}
// 0 while the process works; empty: not known.
inline std::optional<Nanoseconds> idle_time(const IdleState& state) {
  if (!state.evaluated) return std::nullopt;
  return state.idle ? state.idle_for : Nanoseconds(0);
}

// By owner, then GPU index, as they are shown. The ledger has them by GPU, because sorting thousands of names in every
// cycle is too slow.
std::vector<const OwnerAccount*> owners_in_order(const Ledger& ledger);

// The cycle for the rows: joined, merged and with label text, once for all families.
// Has pointers into the cycle and the options.
struct View {
  View(const Cycle& source, const ExposeOptions& settings);
  // Devices and sources only; the lists that need label text stay empty.
  static View of_devices(const Cycle& source, const ExposeOptions& settings) { return {source, settings, false}; }

  LabelText labels() const { return LabelText(constants); }
  LabelText idle_labels() const { return LabelText(idle_constants); }
  const DeviceSeries* find_device(const GpuUuid& uuid) const;
  bool shows(std::monostate) const { return true; }
  bool shows(const void* account) const { return unshown.empty() || !unshown.contains(account); }

  const Cycle& cycle;
  const ExposeOptions& options;
  ConstantLabels constants;
  ConstantLabels idle_constants;
  std::vector<DeviceSeries> devices;
  std::vector<ProcessSeries> processes;  // process: every account
  std::vector<ProcessSeries> holders;    // idle: running, or exited within 30 s
  std::vector<ProcessSeries> listed;     // processlist: running, on a GPU that is up
  std::vector<OwnerSeries> owners;
  std::map<ClosedKey, Booked> closed;
  std::vector<AllocationSeries> allocations;        // by Kubernetes
  std::vector<AllocationSeries> slurm_allocations;  // by Slurm
  std::vector<PodSeries> pods;
  // Over --max-series: these accounts have no series; how many series that are, by collector.
  std::unordered_set<const void*> unshown;
  std::map<std::string_view, uint64_t> left_out;
  std::vector<SourceHealth> sources;

 private:
  View(const Cycle& source, const ExposeOptions& settings, bool with_series);
  void add_series();
  void count_given();
  void count_switches();
};

}  // namespace gpuledger::expose
