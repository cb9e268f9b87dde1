// SPDX-License-Identifier: Apache-2.0
#include "expose/dcgm_seats.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/split.h"

namespace gpuledger::expose {
namespace {

constexpr unsigned kMiBShift = 20;
using Instance = std::optional<uint32_t>;  // a GPU instance; empty: the whole GPU

std::optional<PodPlace> place_of(const Owner& owner) {
  if (owner.kind != OwnerKind::kPod || owner.pod.empty()) return std::nullopt;
  return PodPlace{owner.name_space, owner.pod, owner.container};
}

// The parts, scaled down if they exceed the total: lists and totals are read at different moments.
std::vector<uint64_t> fit(uint64_t total, std::vector<uint64_t> wanted) {
  return std::accumulate(wanted.begin(), wanted.end(), uint64_t{0}) <= total ? wanted : split_exactly(total, wanted);
}

// Use by processes, by instance and pod (without a name: all other processes).
struct Use {
  uint64_t microjoules = 0;  // of the last step
  uint64_t bytes = 0;
  bool bytes_known = true;
  Use& operator+=(const Use& other) {
    microjoules += other.microjoules;
    bytes += other.bytes;
    bytes_known = bytes_known && other.bytes_known;
    return *this;
  }
};

class Plan {
 public:
  Plan(const View& view, const DeviceSeries& device, bool by_instance)
      : view_(view), device_(device), description_(*device.account->description) {
    by_instance_ = by_instance && !description_.mig.empty();
    read_processes();
    read_allocations();
  }

  std::vector<Seat> seats() {
    if (by_instance_) {
      std::set<uint32_t> seen;  // compute instances of one GPU instance share its memory: one seat for all
      for (const MigInstance& instance : description_.mig) {
        if (seen.insert(instance.id.gpu_instance).second) add_scope(&instance);
      }
    } else {
      add_scope(nullptr);
    }
    if (seats_.size() == 1 && !by_instance_) {
      seats_[0].power = device_.sample->power;
      if (device_.sample->memory_used) seats_[0].memory_used_mib = device_.sample->memory_used->count >> kMiBShift;
      return std::move(seats_);
    }
    seats_.push_back({&device_, nullptr, {}, true, {}, {}});
    wanted_.push_back({});
    share_power();
    share_memory();
    return std::move(seats_);
  }

 private:
  // The parts without a pod, of an instance and of the whole GPU, get what is left.
  struct Wanted {
    uint64_t microjoules = 0;
    std::optional<uint64_t> mib;
  };

  Instance scope_of(const std::optional<MigInstance>& mig) const {
    return by_instance_ && mig ? Instance(mig->id.gpu_instance) : std::nullopt;
  }

  void read_processes() {
    for (const ProcessAccount& process : view_.cycle.ledger.processes) {
      if (process.gpu != description_.uuid) continue;
      const Instance scope = scope_of(process.mig);
      const auto place = place_of(process.identity.owner);
      Use use;
      use.microjoules = static_cast<uint64_t>(std::max<int64_t>(process.last_step.microjoules(), 0));
      use.bytes = process.active && process.memory ? process.memory->count : 0;
      use.bytes_known = !process.active || process.memory.has_value();
      uses_[{scope, place.value_or(PodPlace())}] += use;
      if (place && process.active) pods_[scope].insert(*place);
    }
  }

  void read_allocations() {
    for (const Allocation& allocation : view_.cycle.identities->allocations) {
      if (allocation.gpu != description_.uuid || allocation.pod.empty()) continue;
      Instance scope;
      for (const MigInstance& instance : description_.mig) {
        if (by_instance_ && instance.uuid == allocation.mig_uuid) scope = instance.id.gpu_instance;
      }
      pods_[scope].insert({allocation.name_space, allocation.pod, allocation.container});
    }
  }

  // The sum of all not in `named`.
  Use use_of_others(const Instance& scope, const std::set<PodPlace>& named) const {
    Use sum;
    for (const auto& [key, use] : uses_) {
      if (key.first == scope && !named.contains(key.second)) sum += use;
    }
    return sum;
  }

  void add_scope(const MigInstance* instance) {
    const Instance scope = instance ? Instance(instance->id.gpu_instance) : std::nullopt;
    const std::set<PodPlace>& pods = pods_[scope];
    const std::optional<uint64_t> used =
        instance && instance->memory_used ? std::optional(instance->memory_used->count >> kMiBShift) : std::nullopt;
    if (pods.size() < 2) {
      seats_.push_back({&device_, instance, pods.empty() ? PodPlace() : *pods.begin(), false, {}, {}});
      const Use use = use_of_others(scope, {});
      wanted_.push_back({use.microjoules, used ? used : mib_of(use)});
      return;
    }
    std::vector<uint64_t> parts;
    for (const PodPlace& pod : pods) {
      const Use use = uses_[{scope, pod}];
      seats_.push_back({&device_, instance, pod, false, {}, {}});
      wanted_.push_back({use.microjoules, mib_of(use)});
      parts.push_back(wanted_.back().mib.value_or(0));
    }
    if (!instance) return;
    if (used) {
      parts = fit(*used, std::move(parts));
      for (size_t i = 0; i < parts.size(); ++i) {
        auto& mib = wanted_[wanted_.size() - parts.size() + i].mib;
        if (mib) mib = parts[i];
      }
    }
    seats_.push_back({&device_, instance, {}, true, {}, {}});
    const Use others = use_of_others(scope, pods);
    const uint64_t taken = std::accumulate(parts.begin(), parts.end(), uint64_t{0});
    wanted_.push_back({others.microjoules, used ? std::optional(*used - taken) : mib_of(others)});
  }

  static std::optional<uint64_t> mib_of(const Use& use) {
    return use.bytes_known ? std::optional(use.bytes >> kMiBShift) : std::nullopt;
  }

  // By the charges of the last step; energy without a charge counts for the last seat.
  void share_power() {
    if (!device_.sample->power) return;
    std::vector<uint64_t> weights;
    for (const Wanted& wanted : wanted_) weights.push_back(wanted.microjoules);
    const uint64_t booked = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
    const auto step = static_cast<uint64_t>(std::max<int64_t>(device_.account->last_step.microjoules(), 0));
    weights.back() += step > booked ? step - booked : 0;
    if (step == 0 && booked == 0) weights.back() = 1;
    const auto total = static_cast<uint64_t>(std::max<int64_t>(device_.sample->power->milliwatts(), 0));
    const std::vector<uint64_t> parts = split_exactly(total, weights);
    for (size_t i = 0; i < seats_.size(); ++i) seats_[i].power = Power::milliwatts(static_cast<int64_t>(parts[i]));
  }

  void share_memory() {
    if (!device_.sample->memory_used) return;
    const uint64_t total = device_.sample->memory_used->count >> kMiBShift;
    std::vector<uint64_t> wanted;
    for (const Wanted& one : wanted_) wanted.push_back(one.mib.value_or(0));
    const std::vector<uint64_t> parts = fit(total, std::move(wanted));
    const uint64_t taken = std::accumulate(parts.begin(), parts.end(), uint64_t{0});
    for (size_t i = 0; i < seats_.size(); ++i) {
      if (wanted_[i].mib) seats_[i].memory_used_mib = parts[i];
    }
    seats_.back().memory_used_mib = parts.back() + total - taken;
  }

  const View& view_;
  const DeviceSeries& device_;
  const DeviceDescription& description_;
  bool by_instance_ = false;
  std::map<std::pair<Instance, PodPlace>, Use> uses_;
  std::map<Instance, std::set<PodPlace>> pods_;
  std::vector<Seat> seats_;
  std::vector<Wanted> wanted_;  // of the same seats
};

// Every pod that was ever charged keeps its part, which is the ledger's and so never falls. The rest is the counter's
// value before the ledger, and energy of no pod.
std::vector<EnergyPart> energy_parts(const View& view, const DeviceSeries& device, const std::vector<Seat>& seats) {
  const DeviceAccount& account = *device.account;
  if (!account.counted_before) return {};
  std::map<PodPlace, Energy> pods;
  Energy rest = *account.counted_before + account.measured;
  for (const OwnerAccount& owner : view.cycle.ledger.owners) {
    const auto place = place_of(owner.owner);
    if (!place || owner.gpu != account.description->uuid) continue;
    pods[*place] += owner.booked.total();
    rest -= owner.booked.total();
  }
  // Not added to the rest, which would jump up by energy already counted for a pod.
  for (const ClosedAccount& closed : view.cycle.ledger.closed) {
    const bool named = closed.kind == OwnerKind::kPod && !closed.name_space.empty();
    if (named && closed.gpu == account.description->uuid) rest -= closed.booked.total();
  }
  std::map<PodPlace, std::set<const MigInstance*>> instances;
  for (const Seat& seat : seats) {
    if (seat.pod.pod.empty()) continue;
    pods.try_emplace(seat.pod);
    instances[seat.pod].insert(seat.instance);
  }
  std::vector<EnergyPart> parts;
  for (const auto& [pod, energy] : pods) {
    const auto on = instances.find(pod);
    const bool one = on != instances.end() && on->second.size() == 1;
    parts.push_back({&device, one ? *on->second.begin() : nullptr, pod, energy});
  }
  parts.push_back({&device, nullptr, {}, rest});
  return parts;
}

}  // namespace

void keep_biggest(Seating& seating, size_t most) {
  std::vector<Seat>& seats = seating.seats;
  if (seats.size() > most && seats.back().rest) {
    // The whole GPU's rest is the last; the others are sorted by power.
    Seat rest = seats.back();
    seats.pop_back();
    std::stable_sort(seats.begin(), seats.end(), [](const Seat& a, const Seat& b) { return a.power > b.power; });
    while (seats.size() + 1 > std::max<size_t>(most, 2)) {
      const Seat& last = seats.back();
      if (last.power)
        rest.power = Power::milliwatts(rest.power.value_or(Power()).milliwatts() + last.power->milliwatts());
      if (last.memory_used_mib) rest.memory_used_mib = rest.memory_used_mib.value_or(0) + *last.memory_used_mib;
      seats.pop_back();
    }
    seats.push_back(std::move(rest));
  }
  std::vector<EnergyPart>& parts = seating.energy;
  if (parts.size() > most) {
    // The rest does not change: a counter must not jump up by energy counted under other labels.
    std::stable_sort(parts.begin(), parts.end() - 1,
                     [](const EnergyPart& a, const EnergyPart& b) { return a.energy > b.energy; });
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(most - 1), parts.end() - 1);
  }
}

Seating seat_pods(const View& view, const DeviceSeries& device, bool by_instance) {
  Seating seating;
  if (device.sample != nullptr) seating.seats = Plan(view, device, by_instance).seats();
  seating.energy = energy_parts(view, device, seating.seats);
  return seating;
}

}  // namespace gpuledger::expose
