// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "expose/expose.h"
#include "expose/labels.h"

namespace gpuledger::expose {

// One set of labels and everything that is printed under it. A reused pid with the same name and owner gives
// several accounts the same labels, and Prometheus refuses a series that comes twice: their counters are
// added up (so that none ever falls), and the gauges are those of the one that lives or lived last.
struct DeviceSeries;
struct ProcessSeries {
  std::string labels;
  const DeviceSeries* device = nullptr;  // null: the GPU has no account
  const ProcessAccount* newest = nullptr;
  Booked booked;
  double variance = 0;          // of booked.shared, in square joules
  std::optional<Bytes> memory;  // of the living
  // With --exact-time. The trace knows a process by its pid alone, so the count is that of the last one that has it.
  std::optional<uint64_t> switches;
};

struct OwnerSeries {
  std::string labels;
  const OwnerAccount* account = nullptr;  // the first of those with these labels
  Booked booked;
  double variance = 0;               // of booked.shared, in square joules
  std::optional<Bytes> idle_memory;  // empty: the GPU cannot say who is idle

  OwnerKind kind() const { return account->owner.kind; }
};

struct DeviceSeries {
  std::string labels;           // gpu, uuid
  std::string gpu_labels;       // gpu
  std::string idle_labels;      // gpu, model, uuid and the constants of gpu_idle_*
  std::string idle_gpu_labels;  // gpu and those constants
  const DeviceAccount* account = nullptr;
  const DeviceSample* sample = nullptr;  // null while the GPU is down: its gauges are absent then
  bool idle_known = false;               // somebody can be called idle or not idle on it
  uint64_t listed = 0;                   // processes of the processlist collector
  Bytes idle_memory;                     // of the idle collector

  bool up() const { return sample != nullptr; }
  // What the GPU says now; all of it is empty while the GPU is down.
  const DeviceSample& reading() const {
    static const DeviceSample nothing;
    return up() ? *sample : nothing;
  }
};

struct AllocationSeries {
  std::string labels;
  const AllocationAccount* account = nullptr;
  bool first_of_place = true;  // false: another replica of the same GPU in the same container
};
using PodSeries = const PodFacts*;

// Owners without series of their own, together: those whose accounts are closed, and those that --max-series left out.
struct ClosedKey {
  uint32_t gpu_index = 0;
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;
  friend auto operator<=>(const ClosedKey&, const ClosedKey&) = default;
};

using ClosedSeries = std::pair<const ClosedKey, Booked>;

// One account alone, without labels: for JSON, which merges nothing.
struct View;
ProcessSeries series_of(const View& view, const ProcessAccount& account);
OwnerSeries series_of(const View& view, const OwnerAccount& account);

LabelText place_labels(const View& view, const Allocation& allocation);

// Empty once the process has exited, though the account keeps its last value.
inline std::optional<double> ratio_of(const ProcessSeries& series, const std::optional<Ratio>& ratio) {
  return ratio && series.newest->active ? std::optional(ratio->value) : std::nullopt;
}
// 0 while the process works; empty where the GPU cannot say.
inline std::optional<Nanoseconds> idle_time(const IdleState& state) {
  if (!state.evaluated) return std::nullopt;
  return state.idle ? state.idle_for : Nanoseconds(0);
}

// By owner, then GPU index: as they are shown. The ledger has them by GPU, because putting thousands of names in order
// in every cycle would cost more than it is worth.
std::vector<const OwnerAccount*> owners_in_order(const Ledger& ledger);

// The cycle as the rows see it: joined, merged and with its labels written, once for all families.
// Points into the cycle and the options.
struct View {
  View(const Cycle& source, const ExposeOptions& settings);
  // Devices and sources only; the lists that need label text stay empty.
  static View of_devices(const Cycle& source, const ExposeOptions& settings) { return {source, settings, false}; }

  LabelText labels() const { return LabelText(constants); }
  LabelText idle_labels() const { return LabelText(idle_constants); }
  const DeviceSeries* find_device(const GpuUuid& uuid) const;

  const Cycle& cycle;
  const ExposeOptions& options;
  ConstantLabels constants;
  ConstantLabels idle_constants;
  std::vector<DeviceSeries> devices;
  std::vector<ProcessSeries> processes;  // process: every account
  std::vector<ProcessSeries> holders;    // idle: running, or gone for less than 30 s
  std::vector<ProcessSeries> listed;     // processlist: running, on a GPU that is up
  std::vector<OwnerSeries> owners;
  std::map<ClosedKey, Booked> closed;
  std::vector<AllocationSeries> allocations;
  std::vector<PodSeries> pods;
  std::map<std::string_view, uint64_t> left_out;  // series that --max-series cost, by collector
  std::vector<SourceHealth> sources;

 private:
  View(const Cycle& source, const ExposeOptions& settings, bool with_series);
  void add_series();
  void count_switches();
};

}  // namespace gpuledger::expose
