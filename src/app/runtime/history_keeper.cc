// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/history_keeper.h"

#include <algorithm>

namespace gpuledger::app {
namespace {

// A cycle that comes slightly early must not delay the step by a whole cycle.
constexpr Nanoseconds kTolerance = std::chrono::milliseconds(200);

constexpr size_t kNode = 64;  // what the heap, a node of the set and a reference count add to an object

size_t bytes_of(const HistoryOwner& owner) {
  return sizeof owner + owner.text.capacity() + 2 * kNode;
}

size_t bytes_of(const HistoryStep& step) {
  size_t bytes = sizeof step + kNode + step.points.capacity() * sizeof(HistoryPoint);
  for (const HistoryPoint& point : step.points) bytes += kNode / 4 + point.parts.capacity() * sizeof(HistoryPart);
  return bytes;
}

Energy sum_of(const std::array<Energy, kReasonCount>& reasons) {
  Energy sum;
  for (const Energy energy : reasons) sum += energy;
  return sum;
}

// When the GPU's energy was read; empty: it did not answer.
std::optional<Nanoseconds> read_time(const SampleBatch& batch, const GpuUuid& gpu) {
  for (const DeviceSample& device : batch.devices) {
    if (device.description->uuid != gpu || !device.up) continue;
    return device.read_at ? device.read_at->steady : batch.at.steady;
  }
  return std::nullopt;
}

}  // namespace

bool HistoryKeeper::add(const Cycle& cycle) {
  const Nanoseconds now = cycle.batch.at.steady;
  if (last_ && now >= *last_ && now - *last_ < kStep - kTolerance) return false;
  last_ = now;

  HistoryStep step;
  step.to = now;
  step.points.reserve(cycle.ledger.devices.size());
  std::map<GpuUuid, Base> bases;
  Owners next = cycle.ledger.owners.begin();  // by GPU, as the devices
  for (const DeviceAccount& device : cycle.ledger.devices) {
    const GpuUuid& gpu = device.description->uuid;
    const Owners begin = next;
    while (next != cycle.ledger.owners.end() && next->gpu == gpu) ++next;
    const auto before = bases_.find(gpu);
    const auto at = read_time(cycle.batch, gpu);
    if (!at) {
      // Lost: its next point begins where the last one ended.
      if (before != bases_.end()) bases.insert(bases_.extract(before));
      continue;
    }
    Base base{*at, device.measured, sum_of(device.unattributed), {}};
    base.owners.reserve(static_cast<size_t>(next - begin));
    for (Owners owner = begin; owner != next; ++owner) base.owners.emplace_back(owner->owner, owner->booked.total());
    if (auto point = point_of(device, begin, next, base)) step.points.push_back(std::move(*point));
    bases.emplace(gpu, std::move(base));
  }
  bases_ = std::move(bases);

  if (!step.points.empty()) {
    bytes_ += bytes_of(step);
    steps_.push_back(std::make_shared<const HistoryStep>(std::move(step)));
  }
  drop_oldest();
  publish(cycle.batch.at);
  return true;
}

std::optional<HistoryPoint> HistoryKeeper::point_of(const DeviceAccount& device, Owners begin, Owners end,
                                                    const Base& now) {
  const auto found = bases_.find(device.description->uuid);
  if (found == bases_.end()) return std::nullopt;
  const Base& before = found->second;
  // Values that fell belong to other books (without a state file, after a restart).
  if (now.at <= before.at || now.measured < before.measured || now.unattributed < before.unattributed) {
    return std::nullopt;
  }
  HistoryPoint point;
  point.gpu = device.description->uuid;
  point.gpu_index = device.description->index;
  point.from = before.at;
  point.to = now.at;
  point.measured = now.measured - before.measured;
  point.unattributed = now.unattributed - before.unattributed;
  point.power_limit = device.description->power_limit;
  point.parts = largest(before, begin, end);
  // Computed as the rest, so that it includes owners whose accounts were closed.
  point.others = point.measured - point.unattributed;
  for (const HistoryPart& part : point.parts) point.others -= part.energy;
  if (point.others >= Energy()) return point;
  for (const HistoryPart& part : point.parts) forget(part);
  return std::nullopt;
}

std::vector<HistoryPart> HistoryKeeper::largest(const Base& before, Owners begin, Owners end) {
  std::map<HistoryOwner, Energy> spent;
  auto then = before.owners.begin();
  for (Owners now = begin; now != end; ++now) {
    while (then != before.owners.end() && then->first < now->owner) ++then;
    const bool known = then != before.owners.end() && then->first == now->owner;
    const Energy energy = now->booked.total() - (known ? then->second : Energy());
    if (energy > Energy()) spent[{now->owner.kind, now->owner.name_space, owner_text(now->owner)}] += energy;
  }
  std::vector<std::pair<const HistoryOwner, Energy>*> order;
  order.reserve(spent.size());
  for (auto& entry : spent) order.push_back(&entry);
  const size_t count = std::min(order.size(), kOwnersPerPoint);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [](const auto* a, const auto* b) { return a->second > b->second; });
  std::vector<HistoryPart> parts;
  parts.reserve(count);
  for (size_t i = 0; i < count; ++i) parts.push_back({intern(order[i]->first), order[i]->second});
  return parts;
}

std::shared_ptr<const HistoryOwner> HistoryKeeper::intern(HistoryOwner owner) {
  const auto [place, is_new] = owners_.try_emplace(std::make_shared<const HistoryOwner>(std::move(owner)), 0);
  if (is_new) bytes_ += bytes_of(*place->first);
  ++place->second;
  return place->first;
}

void HistoryKeeper::forget(const HistoryPart& part) {
  const auto place = owners_.find(part.owner);
  if (--place->second > 0) return;
  bytes_ -= bytes_of(*place->first);
  owners_.erase(place);
}

void HistoryKeeper::drop_oldest() {
  // A step in the future was measured by another clock.
  const auto is_over = [&](const HistoryStep& step) { return step.to <= *last_ - kSpan || step.to > *last_; };
  while (!steps_.empty() && (is_over(*steps_.front()) || (steps_.size() > 1 && bytes_ > kMaxBytes))) {
    const auto step = steps_.front();
    steps_.erase(steps_.begin());
    bytes_ -= bytes_of(*step);
    for (const HistoryPoint& point : step->points) {
      for (const HistoryPart& part : point.parts) forget(part);
    }
  }
}

void HistoryKeeper::publish(const Timestamp& at) {
  auto history = std::make_shared<History>();
  history->at = at;
  history->step = kStep;
  history->steps = steps_;
  history_ = std::move(history);
}

}  // namespace gpuledger::app
