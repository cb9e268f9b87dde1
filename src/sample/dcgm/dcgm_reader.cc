// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_reader.h"

#include <algorithm>

#include "base/log.h"
#include "sample/dcgm/dcgm_fields.h"
#include "sample/gpu_filter.h"

namespace gpuledger::dcgm {

namespace {

constexpr Nanoseconds kLookForGpus = std::chrono::seconds(10);
constexpr Nanoseconds kDescribeEvery = std::chrono::seconds(10);
constexpr double kKeepValuesSeconds = 60;
constexpr Nanoseconds kMostAge = std::chrono::seconds(2);
constexpr double kKeepLists = 15;
constexpr FieldId kEvents[] = {kFieldXid};

std::vector<FieldId> copy(std::span<const FieldId> fields) {
  return {fields.begin(), fields.end()};
}

}  // namespace

Reader::Reader(Connection& engine, ReaderOptions options, const Clock& clock)
    : engine_(engine), options_(std::move(options)), clock_(clock), lives_(clock.now().wall) {}

Status Reader::find_gpus() {
  unsigned ids[kMostDevices] = {};
  int count = 0;
  const Return result = engine_.call("dcgmGetAllDevices", engine_.functions().dcgmGetAllDevices, ids, &count);
  if (result != kOk) {
    engine_.count_failure(result);
    return Error{code_of(result), describe("dcgmGetAllDevices", result)};
  }
  // An engine that could not load the driver starts anyway.
  if (count <= 0) return Error{Code::kNotFound, "the engine has no GPU: does nvidia-smi work where it runs?"};
  if (!watching_) watch_devices();
  describe_gpus({ids, ids + std::min(count, kMostDevices)});
  find_instances();
  uuids_.clear();
  for (const auto& [id, known] : gpus_) uuids_[id] = known.description.uuid;
  found_at_ = clock_.now().steady;
  if (gpus_.empty()) return Error{Code::kNotFound, "the engine names none of the GPUs asked for"};
  return ok_status();
}

void Reader::describe_gpus(const std::vector<unsigned>& ids) {
  std::map<unsigned, Known> fresh;
  std::vector<Entity> entities;
  for (const unsigned id : ids) {
    entities.push_back({kEntityGpu, id});
    fresh[id].description.index = id;
  }
  for (const auto& [entity, reading] : engine_.read_latest(entities, copy(description_fields()), true)) {
    if (const auto known = fresh.find(entity.id); known != fresh.end()) {
      add_to_description(reading, known->second.description);
    }
  }
  std::string driver;
  for (const auto& [entity, reading] : engine_.read_latest({{kEntityNone, 0}}, {kFieldDriver}, true)) {
    driver = reading.text().value_or("");
  }
  // A GPU without a UUID is no GPU: an engine without a driver returns success without data.
  std::erase_if(fresh, [&](const auto& entry) {
    const DeviceDescription& description = entry.second.description;
    return description.uuid.text.empty() ||
           !is_asked_for(options_.gpu_devices, description.index, description.uuid.text);
  });
  // Two of one UUID or index would be one GPU in the books, or one series twice.
  std::set<std::string> uuids;
  std::set<uint32_t> indexes;
  std::erase_if(fresh, [&](const auto& entry) {
    const DeviceDescription& description = entry.second.description;
    return !uuids.insert(description.uuid.text).second || !indexes.insert(description.index).second;
  });
  for (auto& [id, known] : fresh) known.description.driver = driver;
  gpus_ = std::move(fresh);
}

void Reader::find_instances() {
  const auto hierarchy = std::make_unique<MigHierarchy>();  // 72 KiB
  hierarchy->version = kMigHierarchyVersion;
  const Return result =
      engine_.call("dcgmGetGpuInstanceHierarchy", engine_.functions().dcgmGetGpuInstanceHierarchy, hierarchy.get());
  if (result != kOk) return;  // no GPU here has MIG
  for (unsigned i = 0; i < std::min<unsigned>(hierarchy->count, kMostInstances); ++i) {
    const HierarchyEntry& entry = hierarchy->entityList[i];
    const auto gpu = gpus_.find(entry.parent.id);
    if (entry.entity.kind != kEntityGpuInstance || entry.parent.kind != kEntityGpu || gpu == gpus_.end()) continue;
    gpu->second.instances[entry.entity.id] = entry.nvmlInstanceId;
  }
}

// Each list of fields is its own group. A watch that fails removes every field of its group, even those of another
// watch: in one group, an unsupported profiling field would stop the energy.
void Reader::watch_devices() {
  watching_ = true;
  const auto watch = [&](std::span<const FieldId> fields, Nanoseconds every, double keep_seconds = kKeepValuesSeconds) {
    const auto group = engine_.create_fields(fields);
    if (!group.ok()) return;
    const Return result = engine_.watch(kAllGpus, *group, every, keep_seconds);
    if (result != kOk) engine_.count_failure(result);
  };
  watch(description_fields(), kDescribeEvery);
  if (options_.whole) {
    watch(device_fields(), options_.interval);
    watch(ProcessLists::fields(), ProcessLists::period(options_.interval), kKeepLists);
    watch(kEvents, options_.interval);
  }
  const Return result = lives_.watch(engine_, options_.interval);
  if (result == kOk) return;
  engine_.count_failure(result);
  log_warn("DCGM has no records of exited processes", {{"reason", describe("dcgmWatchPidFields", result)}});
}

void Reader::watch_activity(const std::set<GpuUuid>& wanted) {
  std::vector<Entity> entities;
  for (const auto& [id, known] : gpus_) {
    if (!options_.whole && !wanted.contains(known.description.uuid)) continue;
    entities.push_back({kEntityGpu, id});
    for (const auto& [entity, instance] : known.instances) entities.push_back({kEntityGpuInstance, entity});
  }
  const auto same = [](const Entity& a, const Entity& b) { return a.kind == b.kind && a.id == b.id; };
  if (std::equal(entities.begin(), entities.end(), profiling_.entities.begin(), profiling_.entities.end(), same))
    return;
  if (!profiling_.fields.empty()) engine_.unwatch(profiling_.group, profiling_.field_group);
  profiling_ = {};
  profiling_.entities = entities;
  if (entities.empty()) return;
  const auto group = engine_.create_group(entities);
  if (!group.ok()) return;
  Return result = kOk;
  for (const auto fields : {profiling_fields(), fewer_profiling_fields()}) {
    const auto field_group = engine_.create_fields(fields);
    if (!field_group.ok()) return;
    result = engine_.watch(*group, *field_group, options_.interval, kKeepValuesSeconds);
    if (result == kOk) {
      profiling_.fields = copy(fields);
      profiling_.group = *group;
      profiling_.field_group = *field_group;
      return;
    }
    engine_.call("dcgmFieldGroupDestroy", engine_.functions().dcgmFieldGroupDestroy, *field_group);
  }
  engine_.call("dcgmGroupDestroy", engine_.functions().dcgmGroupDestroy, *group);
  if (!means_unsupported(result)) engine_.count_failure(result);
  log_info("DCGM has no performance monitors here", {{"reason", describe("dcgmWatchFields", result)}});
}

void Reader::read_devices(View& view) {
  std::vector<Entity> entities;
  std::map<unsigned, DeviceSample> samples;
  for (const auto& [id, known] : gpus_) {
    entities.push_back({kEntityGpu, id});
    samples[id];
  }
  int64_t newest_us = 0;
  for (const auto& [entity, reading] : engine_.read_latest(entities, copy(device_fields()), true)) {
    const auto sample = samples.find(entity.id);
    if (entity.kind != kEntityGpu || sample == samples.end()) continue;
    add_to_device(reading, sample->second);
    if (reading.field == kFieldEnergy && sample->second.energy_counter) newest_us = std::max(newest_us, reading.at_us);
  }
  // Values from the engine's cache have the time of its read, not of now.
  int64_t age_us = newest_us > 0 ? micros(view.at.wall) - newest_us : 0;
  if (age_us < 0 || age_us > micros(kMostAge + 3 * options_.interval)) age_us = 0;  // the clock was set in between
  if (newest_us == 0) newest_us = micros(view.at.wall);
  view.at.steady -= std::chrono::microseconds(age_us);
  view.at.wall -= std::chrono::microseconds(age_us);
  for (auto& [id, sample] : samples) {
    DeviceDescription& description = gpus_.at(id).description;
    if (sample.energy_counter) counting_.insert(id);  // stays set, even if a reading is missed later
    description.energy_source = counting_.contains(id) ? EnergySource::kCounter : EnergySource::kPowerIntegral;
    sample.description = std::make_shared<const DeviceDescription>(description);
    sample.up = sample.energy_counter || sample.power;
    for (size_t i = 0; i < kVitalCount; ++i) {
      if (!counters_[id].hold(static_cast<Vital>(i), sample.vitals.values[i])) ++sample.refused_readings;
    }
    // The engine's per-process utilization is not reliable.
    sample.utilization = UtilizationState::kUnsupported;
    if (sample.up) sample.processes = lists_.read(engine_, id, newest_us, view.at.steady, options_.interval);
    view.devices.push_back(std::move(sample));
  }
  std::sort(view.devices.begin(), view.devices.end(),
            [](const auto& a, const auto& b) { return a.description->index < b.description->index; });
}

void Reader::read_activity(View& view) {
  if (profiling_.fields.empty()) return;
  const int64_t now_us = micros(clock_.now().wall);
  const int64_t oldest_us = now_us - micros(3 * options_.interval) - 1000000;
  const int64_t newest_us = now_us + 1000000;  // later ones are older than a clock set back
  const auto place = [&](const Entity& entity) -> Activity* {
    for (const auto& [id, known] : gpus_) {
      const GpuUuid& uuid = known.description.uuid;
      if (entity.kind == kEntityGpu && entity.id == id) {
        std::optional<Activity>& whole = view.activity[uuid].whole;
        return whole ? &*whole : &whole.emplace();
      }
      const auto instance = known.instances.find(entity.id);
      if (entity.kind == kEntityGpuInstance && instance != known.instances.end()) {
        return &view.activity[uuid].instances[instance->second];
      }
    }
    return nullptr;
  };
  for (const auto& [entity, reading] : engine_.read_latest(profiling_.entities, profiling_.fields, false)) {
    if (!reading.number() || reading.at_us < oldest_us || reading.at_us > newest_us) continue;
    if (Activity* const activity = place(entity)) add_to_activity(reading, *activity);
  }
}

void Reader::read_xids(View& view) {
  for (const auto& [gpu, uuid] : uuids_) {
    int64_t& until_us = xids_until_us_.try_emplace(gpu, micros(view.at.wall)).first->second;
    const int64_t now_us = micros(clock_.now().wall);
    until_us = std::min(until_us, now_us);  // the clock may have been set back
    for (const Reading& reading : engine_.read_history(gpu, kFieldXid, until_us + 1, now_us)) {
      until_us = std::max(until_us, reading.at_us);
      const auto xid = reading.count();
      if (xid && *xid != 0) view.xids.push_back({uuid, *xid});  // 0: none yet
    }
  }
}

Result<View> Reader::read(const std::set<GpuUuid>& without_activity) {
  View view;
  view.at = clock_.now();
  if (!found_at_ || view.at.steady - *found_at_ >= kLookForGpus) {
    if (const Status found = find_gpus(); !found.ok()) {
      found_at_.reset();
      return found.error();
    }
  }
  watch_activity(without_activity);
  view.at = clock_.now();
  if (options_.whole) {
    read_devices(view);
    read_xids(view);
  }
  read_activity(view);
  view.lives = lives_.read(engine_, uuids_, clock_.now().wall);
  if (engine_.gone()) return Error{Code::kUnavailable, "the engine is gone; trying again until it is back"};
  return view;
}

}  // namespace gpuledger::dcgm
