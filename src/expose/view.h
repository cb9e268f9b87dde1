#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "expose/expose.h"
#include "expose/labels.h"

namespace gpuledger::expose {

// One set of labels and everything that is printed under it. A reused pid with the same name and owner gives
// several accounts the same labels, and Prometheus refuses a series that comes twice: their counters are
// added up (so that none ever falls), and the gauges are those of the one that lives or lived last.
struct ProcessSeries {
  std::string labels;
  const ProcessAccount* newest = nullptr;
  Booked booked;
  double variance = 0;          // of booked.shared, in square joules
  std::optional<Bytes> memory;  // of the living
};

struct OwnerSeries {
  std::string labels;
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;
  uint32_t gpu_index = 0;
  Booked booked;
  double variance = 0;               // of booked.shared, in square joules
  std::optional<Bytes> idle_memory;  // empty: the GPU cannot say who is idle
};

struct DeviceSeries {
  std::string labels;       // gpu, uuid
  std::string gpu_labels;   // gpu
  std::string idle_labels;  // gpu, model, uuid and the constants of gpu_idle_*
  const DeviceAccount* account = nullptr;
  const DeviceSample* sample = nullptr;  // null while the GPU is down: its gauges are absent then
  bool idle_known = false;               // somebody can be called idle or not idle on it
  uint64_t listed = 0;                   // processes of the processlist collector
  Bytes idle_memory;                     // of the idle collector
};

// Owners without series of their own, together: those whose accounts are closed, and those that --max-series left out.
struct ClosedKey {
  uint32_t gpu_index = 0;
  OwnerKind kind = OwnerKind::kHost;
  Name name_space;
  friend auto operator<=>(const ClosedKey&, const ClosedKey&) = default;
};

// By owner, then GPU index: as they are shown. The ledger has them by GPU, because putting thousands of names in order
// in every cycle would cost more than it is worth.
std::vector<const OwnerAccount*> owners_in_order(const Ledger& ledger);

// The cycle as the emit functions see it: joined, merged and with its labels written, once for all families.
// Points into the cycle and the options.
struct View {
  View(const Cycle& source, const ExposeOptions& settings);
  // Devices and sources only; the lists that need label text stay empty.
  static View of_devices(const Cycle& source, const ExposeOptions& settings) { return {source, settings, false}; }

  LabelText labels() const { return LabelText(constants); }
  LabelText idle_labels() const { return LabelText(idle_constants); }
  const DeviceSeries* find_device(const GpuUuid& uuid) const;
  size_t expected_bytes() const;

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
  std::vector<const AllocationAccount*> allocations;
  std::vector<const PodFacts*> pods;
  std::map<std::string_view, uint64_t> left_out;  // series that --max-series cost, by collector
  std::vector<SourceHealth> sources;

 private:
  View(const Cycle& source, const ExposeOptions& settings, bool with_series);
  void add_series();
};

}  // namespace gpuledger::expose
