// SPDX-License-Identifier: Apache-2.0
#include "expose/upstream_write.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>
#include <utility>

#include "expose/collectors/collectors.h"
#include "expose/dcgm_seats.h"
#include "expose/escape.h"
#include "expose/upstream_split.h"

namespace gpuledger::expose {
namespace {

using Labels = std::vector<UpstreamLabel>;

// Every line may be repeated for every pod on its GPU. No node needs more than these limits.
constexpr size_t kMostWritten = 100'000;
constexpr size_t kMostWrittenBytes = 32 << 20;
constexpr size_t kExpectedBytes = 64 * 1024;

constexpr std::string_view kNoHelp = "From dcgm-exporter.";

enum class Sharing { kRepeated, kPower, kMemory, kEnergy };

Sharing sharing_of(std::string_view family) {
  if (family == "dcgm_power_usage" || family == "DCGM_FI_DEV_POWER_USAGE" ||
      family == "DCGM_FI_DEV_POWER_USAGE_INSTANT")
    return Sharing::kPower;
  if (family == "dcgm_fb_used" || family == "DCGM_FI_DEV_FB_USED") return Sharing::kMemory;
  if (family == "dcgm_total_energy_consumption" || family == "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
    return Sharing::kEnergy;
  return Sharing::kRepeated;
}

MetricType type_of(std::string_view type) {
  if (type == "counter") return MetricType::kCounter;
  return type == "gauge" ? MetricType::kGauge : MetricType::kUntyped;
}

const std::string* find(const Labels& labels, std::string_view name) {
  for (const UpstreamLabel& label : labels) {
    if (label.name == name) return &label.value;
  }
  return nullptr;
}

bool names_pod(const Labels& labels) {
  return find(labels, "pod") || find(labels, "pod_name");
}

void set(Labels& labels, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  const auto at = std::lower_bound(labels.begin(), labels.end(), name,
                                   [](const UpstreamLabel& label, std::string_view n) { return label.name < n; });
  if (at == labels.end() || at->name != name) labels.insert(at, {std::string(name), std::string(value)});
}

std::string write_labels(const Labels& labels) {
  std::string text;
  for (const UpstreamLabel& label : labels) {
    if (!text.empty()) text += ',';
    text.append(label.name).append("=\"");
    append_label_value(text, label.value);
    text += '"';
  }
  return text;
}

// A known GPU with both kinds of seating, so that each is made only once.
struct KnownGpu {
  const DeviceSeries* series = nullptr;
  Seating whole;
  Seating by_instance;
};

// The subject of a line.
struct Scope {
  const KnownGpu* gpu = nullptr;  // null: not known
  std::optional<uint32_t> instance;

  const Seating& seating() const { return instance ? gpu->by_instance : gpu->whole; }
  bool holds(const MigInstance* on) const { return on == nullptr || on->id.gpu_instance == instance; }
};

struct Limits {
  size_t samples = kMostWritten;
  size_t seats = 0;  // of a GPU; 0: all
};

class Relabelling {
 public:
  Relabelling(const View& view, Limits limits, TextWriter& out) : view_(view), limits_(limits), out_(out) {
    for (const DeviceSeries& device : view.devices) {
      KnownGpu& gpu =
          gpus_.emplace_back(KnownGpu{&device, seat_pods(view, device, false), seat_pods(view, device, true)});
      if (limits.seats == 0) continue;
      keep_biggest(gpu.whole, limits.seats);
      keep_biggest(gpu.by_instance, limits.seats);
    }
  }

  size_t left_out() const { return left_out_; }

  void add(const UpstreamFamily& family) {
    out_.begin_family({family.name, type_of(family.type), {}, family.help.empty() ? kNoHelp : family.help});
    older_form_ = family.name.starts_with("dcgm_");
    written_.clear();
    const Sharing sharing = sharing_of(family.name);
    for (const UpstreamSeries& series : family.series) add(series, sharing);
  }

 private:
  void add(const UpstreamSeries& series, Sharing sharing) {
    const Scope scope = names_pod(series.labels) ? Scope() : scope_of(series.labels);
    if (!scope.gpu) return write(series.labels, series.value);
    bool written = false;
    switch (sharing) {
      case Sharing::kEnergy: written = add_energy(series, scope); break;
      case Sharing::kPower: written = add_power(series, scope); break;
      case Sharing::kMemory: written = add_memory(series, scope); break;
      case Sharing::kRepeated: written = repeat(series, scope); break;
    }
    if (!written) write(series.labels, series.value);
  }

  // By UUID if there is one: the index may differ between programs.
  Scope scope_of(const Labels& labels) const {
    Scope scope;
    const std::string* uuid = find(labels, "uuid");
    if (!uuid) uuid = find(labels, "UUID");
    const std::string* const index = find(labels, "gpu");
    for (const KnownGpu& gpu : gpus_) {
      const DeviceDescription& description = *gpu.series->account->description;
      if (uuid ? *uuid == description.uuid.text : index && *index == std::to_string(description.index))
        scope.gpu = &gpu;
      for (const MigInstance& instance : description.mig) {
        if (uuid && *uuid == instance.uuid) scope = {&gpu, instance.id.gpu_instance};
      }
    }
    if (const std::string* const id = find(labels, "GPU_I_ID"); id && scope.gpu) {
      uint32_t number = 0;
      const auto [end, error] = std::from_chars(id->data(), id->data() + id->size(), number);
      if (error == std::errc() && end == id->data() + id->size()) scope.instance = number;
    }
    return scope;
  }

  std::vector<const Seat*> seats_in(const Scope& scope) const {
    std::vector<const Seat*> seats;
    for (const Seat& seat : scope.seating().seats) {
      if ((seat.instance != nullptr) == scope.instance.has_value() && scope.holds(seat.instance))
        seats.push_back(&seat);
    }
    return seats;
  }

  bool repeat(const UpstreamSeries& series, const Scope& scope) {
    bool any = false;
    for (const Seat* seat : seats_in(scope)) {
      if (seat->rest) continue;
      write_for(series.labels, seat->pod, series.value);
      any = true;
    }
    return any;
  }

  // An instance's line has the whole GPU's power: no instance has its own.
  bool add_power(const UpstreamSeries& series, const Scope& scope) {
    const std::vector<Seat>& seats = scope.seating().seats;
    if (seats.size() < 2) return repeat(series, scope);
    std::vector<uint64_t> weights;
    for (const Seat& seat : seats) {
      weights.push_back(static_cast<uint64_t>(std::max<int64_t>(seat.power.value_or(Power()).milliwatts(), 0)));
    }
    const auto parts = split_decimal(series.value, weights);
    if (!parts) return false;
    for (size_t i = 0; i < seats.size(); ++i) {
      if (scope.holds(seats[i].instance))
        write_for(fitting(series.labels, seats[i].instance), seats[i].pod, (*parts)[i]);
    }
    return true;
  }

  bool add_memory(const UpstreamSeries& series, const Scope& scope) {
    const std::vector<const Seat*> seats = seats_in(scope);
    if (seats.size() < 2) return repeat(series, scope);
    std::vector<uint64_t> wanted;
    for (const Seat* seat : seats) wanted.push_back(seat->rest ? 0 : seat->memory_used_mib.value_or(0));
    const auto parts = split_whole(series.value, wanted);
    if (!parts) return false;
    for (size_t i = 0; i < seats.size(); ++i) {
      if (seats[i]->rest)
        write_for(series.labels, {}, parts->rest);
      else if (seats[i]->memory_used_mib)
        write_for(series.labels, seats[i]->pod, parts->parts[i]);
    }
    return true;
  }

  bool add_energy(const UpstreamSeries& series, const Scope& scope) {
    for (const EnergyPart& part : scope.seating().energy) {
      if (!scope.holds(part.instance)) continue;
      std::string value;
      append_number(value, Thousandths{part.energy.microjoules()});
      write_for(fitting(series.labels, part.instance), part.pod, value);
    }
    return !scope.seating().energy.empty();
  }

  // Without an instance the labels of instances are removed.
  static Labels fitting(Labels labels, const MigInstance* instance) {
    if (!instance) {
      std::erase_if(labels, [](const UpstreamLabel& l) { return l.name == "GPU_I_ID" || l.name == "GPU_I_PROFILE"; });
    }
    return labels;
  }

  void write_for(Labels labels, const PodPlace& pod, std::string_view value) {
    const bool older = find(labels, "uuid") || (older_form_ && !find(labels, "UUID"));
    set(labels, older ? "pod_name" : "pod", pod.pod);
    set(labels, older ? "pod_namespace" : "namespace", pod.name_space);
    set(labels, older ? "container_name" : "container", pod.container);
    write(std::move(labels), value);
  }

  void write(Labels labels, std::string_view value) {
    set(labels, "node", view_.options.node);
    std::string text = write_labels(labels);
    if (out_.samples() >= limits_.samples || out_.bytes() + text.size() > kMostWrittenBytes) {
      ++left_out_;
    } else if (written_.insert(text).second) {  // a line with a pod and one that got the same pod are duplicates
      out_.add(text, WrittenNumber{value});
    }
  }

  const View& view_;
  const Limits limits_;
  TextWriter& out_;
  size_t left_out_ = 0;
  std::vector<KnownGpu> gpus_;
  bool older_form_ = false;
  std::unordered_set<std::string> written_;  // labels of this family
};

void write_left_out(const View& view, TextWriter& out) {
  const Row<View>& row = left_out_row();
  out.begin_family({std::string(row.name), row.type, {}, row.help});
  Samples samples(view, out, {});
  row.read(view, samples);
}

}  // namespace

std::string write_upstream(const UpstreamText& text, const Cycle& cycle, const ExposeOptions& options, Format format) {
  View view = View::of_devices(cycle, options);
  size_t left_out = 0;
  const auto write = [&](Limits limits) {
    TextWriter out(format, kExpectedBytes);
    Relabelling relabelling(view, limits, out);
    for (const UpstreamFamily& family : text.families) relabelling.add(family);
    left_out = relabelling.left_out();
    return out;
  };
  Limits limits;
  if (options.max_series > 0) limits.samples = std::min(limits.samples, options.max_series);
  TextWriter all = write(limits);
  if (left_out == 0) return all.take();

  // Each line is then repeated at most so often, for the pods that use most.
  const size_t wanted = all.samples() + left_out;
  size_t lines = 0;
  for (const UpstreamFamily& family : text.families) lines += family.series.size();
  TextWriter fewer = write({limits.samples - 1, std::max<size_t>(2, limits.samples / lines)});
  view.left_out["dcgm-exporter"] = wanted - fewer.samples();
  write_left_out(view, fewer);
  return fewer.take();
}

}  // namespace gpuledger::expose
