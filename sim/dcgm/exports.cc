// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "engine.h"
#include "sample/dcgm/dcgm_value.h"

// libdcgm's functions, declared from the same list that the product loads. A definition that does not match its line
// there does not compile.
using namespace gpuledger::sim_dcgm;

namespace gpuledger::dcgm {

#define DCGM_FUNCTION(symbol, parameters) extern "C" __attribute__((visibility("default"))) Return symbol parameters;
#include "sample/dcgm/dcgm_functions.inc"
#undef DCGM_FUNCTION

namespace {

constexpr Handle kEmbedded = 0x7fffffff;
constexpr Handle kWrittenOnFailure = 0x64;
constexpr unsigned kDefaultTimeoutMs = 5000;
constexpr FieldId kPidFields[] = {205, 156, 155, 203, 204, 230, 100, 101, 202, 240, 241, 242, 310, 311};

Engine& enter(const char* call) {
  Engine& engine = Engine::get();
  double slow_ms = 0;
  {
    const std::lock_guard lock(engine.mutex);
    engine.read_control_file();
    ++engine.seen["calls:" + std::string(call)];
    slow_ms = engine.settings["slow_ms"];
  }
  if (slow_ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(slow_ms));
  // With a limit, as the real library has for its engine.
  constexpr int kTriesInAMinute = 6000;
  for (int i = 0;; ++i) {
    {
      const std::lock_guard lock(engine.mutex);
      engine.read_control_file();
      if (i >= kTriesInAMinute * engine.settings["hang"]) break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return engine;
}

template <typename Body>
Return with_engine(const char* call, Handle handle, Body body) {
  Engine& engine = enter(call);
  const std::lock_guard lock(engine.mutex);
  if (engine.on("dead")) {
    if (!engine.embedded) engine.connection = 0;  // an engine that comes back has forgotten us
    engine.forget_client();
  }
  if (engine.connection == 0 || handle != engine.connection) return kConnectionNotValid;
  engine.update();
  return body(engine);
}

Return version_text(VersionInfo* info, double given) {
  if (!info || info->version != kVersionInfoVersion) return kVersionMismatch;
  const int major = given != 0 ? static_cast<int>(given) : DCGM_SIM_MAJOR;
  const std::string text = "version:" + std::to_string(major) + ".3.9;arch:x86_64;buildtype:Simulated";
  std::memcpy(info->text, text.c_str(), text.size() + 1);
  return kOk;
}

template <typename FieldValue>
void fill(FieldValue& out, FieldId field, const Value& value) {
  out.fieldId = field;
  out.fieldType = static_cast<unsigned short>(value.type);
  out.status = value.status;
  out.ts = value.at;
  if (value.type == 'i' || value.type == 't') out.value.i64 = value.i64;
  if (value.type == 'd') out.value.dbl = value.dbl;
  if (value.type == 's') std::strncpy(out.value.text, value.text.c_str(), sizeof out.value.text - 1);
  if (value.type == 'b' && !value.blob.empty()) std::memcpy(out.value.blob, value.blob.data(), value.blob.size());
}

// Version 3 leaves a 0 where there is no sample, version 4 a blank.
Value no_sample(Return status) {
  Value value = refusal('i', status);
  if (DCGM_SIM_MAJOR == 3) value.i64 = 0;
  return value;
}

Value latest(Engine& engine, const Entity& entity, FieldId field, bool live) {
  ++engine.seen["asked:" + std::to_string(field)];
  if (field == 205 && engine.on("accounting_unsupported")) return refusal('b', kNotSupported);
  if (live) {
    auto now = read_field(engine.driver, entity.kind, entity.id, field);
    Value value = now.empty() ? no_sample(kNoData) : now.back();
    value.at = engine.on("no_calendar") ? INT64_MAX : wall_now();
    if (engine.on("one_uuid") && field == 54) value = words("GPU-one-for-all");
    if (engine.on("new_uuids") && field == 54) value = words("GPU-new-" + std::to_string(engine.seen["asked:54"]));
    if (engine.on("blank") && value.type == 'i') value.i64 = kBlank64 + 1;
    if (engine.on("blank") && value.type == 'd') value.dbl = kBlankDouble + 3;
    return value;
  }
  const Engine::Key key{entity.kind, entity.id, field};
  const auto kept = engine.memory.find(key);
  if (kept != engine.memory.end() && !kept->second.empty()) return kept->second.back();
  return no_sample(engine.watches.contains(key) ? kNoData : kNotWatched);
}

void watch(Engine& engine, const Entity& entity, FieldId field, long long every) {
  auto& entry = engine.watches[{entity.kind, entity.id, field}];
  entry.every = every;
  entry.next = 0;
  ++engine.seen["watched:" + std::to_string(field)];
}

// Without accounting in the driver the engine reports no error: it claims that the process ran on every GPU, with
// numbers from its stack.
void lie_about(Engine& engine, PidInfo* info) {
  info->numGpus = static_cast<int>(engine.driver.gpus());
  for (int i = 0; i < info->numGpus; ++i) {
    info->gpus[i].gpuId = static_cast<unsigned>(i);
    info->gpus[i].startTime = 0x6162636465666768;
    info->gpus[i].maxGpuMemoryUsed = 0x6162636465666768;
  }
}

Return tell_about(Engine& engine, PidInfo* info) {
  for (unsigned gpu = 0; gpu < engine.driver.gpus(); ++gpu) {
    for (const Value& value : read_field(engine.driver, kEntityGpu, gpu, 205)) {
      if (value.status != kOk) continue;
      AccountingStats stats;
      std::memcpy(&stats, value.blob.data(), sizeof stats);
      if (stats.pid != info->pid) continue;
      PidSingleInfo& out = info->gpus[info->numGpus++];
      out.gpuId = gpu;
      out.energyConsumed = 1'000'000'000'000;  // of the whole GPU, not of the process
      out.pcieRxBandwidth = {kBlank64, kBlank64, kBlank64};
      out.startTime = static_cast<int64_t>(stats.startTimestamp);
      out.endTime = stats.activeTimeUsec == 0 ? 0 : static_cast<int64_t>(stats.startTimestamp + stats.activeTimeUsec);
      out.processUtilization = {stats.pid, 6.9e-310, 61};  // left from the last call
      out.maxGpuMemoryUsed = static_cast<int64_t>(stats.maxMemoryUsage);
      out.boardLimitViolationTime = kBlank64;
    }
  }
  if (info->numGpus == 0) return kNoData;
  info->summary = info->gpus[info->numGpus - 1];
  info->summary.maxGpuMemoryUsed = 1;
  info->summary.startTime = 1;
  info->summary.boardLimitViolationTime = 0;
  if (engine.on("wrong_start")) info->gpus[0].startTime += 3600ll * 1000000;
  return kOk;
}

}  // namespace

extern "C" {

Return dcgmInit(void) {
  return kOk;
}

Return dcgmShutdown(void) {
  return kOk;
}

Return dcgmVersionInfo(VersionInfo* info) {
  Engine& engine = Engine::get();
  const std::lock_guard lock(engine.mutex);
  engine.read_control_file();
  return version_text(info, engine.settings["library_major"]);
}

Return dcgmConnect_v2(const char* address, ConnectParams* parameters, Handle* handle) {
  Engine& engine = enter("dcgmConnect_v2");
  if (!address || !parameters || !handle) return kBadParameter;
  if (parameters->version != kConnectParamsVersion) return kVersionMismatch;
  std::unique_lock lock(engine.mutex);
  engine.seen["persist"] = parameters->persistAfterDisconnect;
  engine.seen["unix"] = parameters->addressIsUnixSocket;
  engine.seen["timeout_ms"] = parameters->timeoutMs;
  if (engine.on("dead")) {
    lock.unlock();
    const unsigned patience = parameters->timeoutMs == 0 ? kDefaultTimeoutMs : parameters->timeoutMs;
    std::this_thread::sleep_for(std::chrono::milliseconds(patience));
    *handle = kWrittenOnFailure;
    return kConnectionNotValid;
  }
  *handle = engine.next_handle++;
  if (engine.on("dead_login")) return kOk;
  engine.connection = *handle;
  engine.forget_client();
  return kOk;
}

Return dcgmDisconnect(Handle handle) {
  Engine& engine = enter("dcgmDisconnect");
  const std::lock_guard lock(engine.mutex);
  if (handle == engine.connection) {
    engine.connection = 0;
    if (engine.seen["persist"] == 0) engine.forget_client();
    engine.driver.close();
  }
  return kOk;
}

Return dcgmStartEmbedded_v2(EmbeddedParams* parameters) {
  Engine& engine = enter("dcgmStartEmbedded_v2");
  if (!parameters || parameters->version != kEmbeddedParamsVersion) return kVersionMismatch;
  const std::lock_guard lock(engine.mutex);
  engine.seen["log_to_file"] = parameters->logFile == nullptr || std::strcmp(parameters->logFile, "-") != 0;
  engine.seen["severity"] = parameters->severity;
  if (const char* home = std::getenv("DCGM_HOME_DIR"); home && chdir(home) != 0) return kBadParameter;
  parameters->handle = engine.embedded ? 0 : kEmbedded;
  if (!engine.embedded) engine.connection = kEmbedded;
  engine.embedded = true;
  return kOk;
}

Return dcgmStopEmbedded(Handle) {
  Engine& engine = enter("dcgmStopEmbedded");
  const std::lock_guard lock(engine.mutex);
  engine.embedded = false;
  engine.connection = 0;
  engine.forget_client();
  engine.driver.close();
  return kOk;
}

Return dcgmHostengineVersionInfo(Handle handle, VersionInfo* info) {
  return with_engine("dcgmHostengineVersionInfo", handle, [&](Engine&) { return version_text(info, 0); });
}

Return dcgmGetAllDevices(Handle handle, unsigned ids[32], int* count) {
  return with_engine("dcgmGetAllDevices", handle, [&](Engine& engine) {
    *count = 0;
    if (engine.on("no_nvml") || !engine.driver.open()) return kOk;
    for (unsigned i = 0; i < engine.driver.gpus() && i < 32; ++i) ids[(*count)++] = i;
    return kOk;
  });
}

Return dcgmGetGpuInstanceHierarchy(Handle handle, MigHierarchy* hierarchy) {
  return with_engine("dcgmGetGpuInstanceHierarchy", handle, [&](Engine& engine) {
    if (hierarchy->version != kMigHierarchyVersion) return kVersionMismatch;
    if (!engine.driver.open()) return kNvmlNotLoaded;
    hierarchy->count = 0;
    const auto instances = engine.driver.instances();
    for (unsigned i = 0; i < instances.size(); ++i) {
      HierarchyEntry& entry = hierarchy->entityList[hierarchy->count++];
      entry.entity = {kEntityGpuInstance, i};
      entry.parent = {kEntityGpu, instances[i].gpu};
      entry.nvmlInstanceId = instances[i].gpu_instance;
    }
    return kOk;
  });
}

Return dcgmGroupCreate(Handle handle, int type, const char*, Group* group) {
  return with_engine("dcgmGroupCreate", handle, [&](Engine& engine) {
    if (type != kGroupEmpty) return kBadParameter;
    *group = engine.next_group++;
    engine.groups[*group] = {};
    return kOk;
  });
}

Return dcgmGroupDestroy(Handle handle, Group group) {
  return with_engine("dcgmGroupDestroy", handle,
                     [&](Engine& engine) { return engine.groups.erase(group) ? kOk : kBadParameter; });
}

Return dcgmGroupAddEntity(Handle handle, Group group, int kind, unsigned id) {
  return with_engine("dcgmGroupAddEntity", handle, [&](Engine& engine) {
    if (!engine.groups.contains(group)) return kBadParameter;
    engine.groups[group].push_back({kind, id});
    return kOk;
  });
}

Return dcgmFieldGroupCreate(Handle handle, int count, const FieldId* ids, const char*, FieldGroup* group) {
  return with_engine("dcgmFieldGroupCreate", handle, [&](Engine& engine) {
    if (count < 1 || count > 128) return kBadParameter;
    *group = engine.next_group++;
    engine.field_groups[*group].assign(ids, ids + count);
    return kOk;
  });
}

Return dcgmFieldGroupDestroy(Handle handle, FieldGroup group) {
  return with_engine("dcgmFieldGroupDestroy", handle,
                     [&](Engine& engine) { return engine.field_groups.erase(group) ? kOk : kBadParameter; });
}

Return dcgmWatchFields(Handle handle, Group group, FieldGroup fields, long long frequency_us, double, int) {
  return with_engine("dcgmWatchFields", handle, [&](Engine& engine) {
    const std::vector<Entity> entities = engine.members(group);
    if (entities.empty()) return kGroupIsEmpty;
    const auto& ids = engine.field_groups[fields];
    for (const FieldId field : ids) {
      const bool too_many = engine.on("few_monitors") && field > 1005;
      if (field > 1000 && (engine.on("no_profiling") || too_many)) {
        // The rollback removes every watch of these fields, also those of other watchers.
        for (const Entity& entity : entities) {
          for (const FieldId undone : ids) engine.watches.erase({entity.kind, entity.id, undone});
        }
        return too_many ? kProfilingMultiPass : kModuleNotLoaded;
      }
      for (const Entity& entity : entities) watch(engine, entity, field, frequency_us);
    }
    engine.update();
    return kOk;
  });
}

Return dcgmUnwatchFields(Handle handle, Group group, FieldGroup fields) {
  return with_engine("dcgmUnwatchFields", handle, [&](Engine& engine) {
    for (const Entity& entity : engine.members(group)) {
      for (const FieldId field : engine.field_groups[fields]) {
        engine.watches.erase({entity.kind, entity.id, field});
        engine.seen.erase("watched:" + std::to_string(field));
      }
    }
    return kOk;
  });
}

Return dcgmEntitiesGetLatestValues(Handle handle, Entity entities[], unsigned count, FieldId fields[],
                                   unsigned field_count, unsigned flags, FieldValue_v2 values[]) {
  return with_engine("dcgmEntitiesGetLatestValues", handle, [&](Engine& engine) {
    if (engine.on("old_engine")) return kFunctionNotFound;
    if (!engine.driver.open()) return kNvmlNotLoaded;
    for (unsigned i = 0; i < count; ++i) {
      for (unsigned j = 0; j < field_count; ++j, ++values) {
        values->version = struct_version(sizeof *values, 2);
        values->entityGroupId = entities[i].kind;
        values->entityId = entities[i].id;
        fill(*values, fields[j], latest(engine, entities[i], fields[j], (flags & kLiveValue) != 0));
        if (engine.on("empty_strings") && values->fieldType == 's') values->value.text[0] = '\0';
      }
    }
    return kOk;
  });
}

Return dcgmGetMultipleValuesForField(Handle handle, int gpu, FieldId field, int* count, long long start, long long end,
                                     int order, FieldValue_v1 values[]) {
  return with_engine("dcgmGetMultipleValuesForField", handle, [&](Engine& engine) {
    ++engine.seen["asked:" + std::to_string(field)];
    const Engine::Key key{kEntityGpu, static_cast<unsigned>(gpu), field};
    const auto kept = engine.memory.find(key);
    const int most = *count;
    *count = 0;
    if (kept == engine.memory.end() || kept->second.empty()) {
      return engine.watches.contains(key) ? kNoData : kNotWatched;
    }
    std::vector<const Value*> found;
    for (const Value& value : kept->second) {
      const bool asked_for = value.at >= start && (end == 0 || value.at <= end);
      if (asked_for || engine.on("whole_history")) found.push_back(&value);
    }
    if (order == kOrderDescending) found = {found.rbegin(), found.rend()};
    for (const Value* value : found) {
      if (*count >= most) break;
      values[*count].version = struct_version(sizeof *values, 1);
      fill(values[(*count)++], field, *value);
    }
    return *count > 0 ? kOk : kNoData;
  });
}

Return dcgmWatchPidFields(Handle handle, Group group, long long frequency_us, double, int) {
  return with_engine("dcgmWatchPidFields", handle, [&](Engine& engine) {
    if (engine.on("accounting_refused")) return kRequiresRoot;
    for (const Entity& entity : engine.members(group)) {
      if (!engine.on("accounting_unsupported")) engine.driver.set_accounting(entity.id);
      for (const FieldId field : kPidFields) watch(engine, entity, field, frequency_us);
    }
    engine.seen["pid_watch"] = 1;
    engine.update();
    return kOk;
  });
}

Return dcgmGetPidInfo(Handle handle, Group, PidInfo* info) {
  return with_engine("dcgmGetPidInfo", handle, [&](Engine& engine) {
    if (!info || info->version != kPidInfoVersion) return kVersionMismatch;
    if (info->pid == 0) return kBadParameter;
    if (!engine.watches.contains({kEntityGpu, 0, 205})) return kNotWatched;
    info->numGpus = 0;
    if (engine.on("accounting_unsupported")) {
      lie_about(engine, info);
      return kOk;
    }
    return tell_about(engine, info);
  });
}

// For tests: set a behaviour of the engine, read what clients did, start again.
__attribute__((visibility("default"))) void dcgm_sim_set(const char* name, double value) {
  Engine& engine = Engine::get();
  const std::lock_guard lock(engine.mutex);
  engine.settings[name] = value;
  if (std::string_view(name) == "clock_set_by_s") clock_was_set_by = static_cast<Micros>(value * 1e6);
  if (std::string_view(name) != "clock_stands_at_s") return;
  clock_stands_at = static_cast<Micros>(value * 1e6 + 0.5);
  if (engine.connection != 0 && !engine.on("dead") && !engine.on("hang")) engine.update();
}

__attribute__((visibility("default"))) double dcgm_sim_seen(const char* name) {
  Engine& engine = Engine::get();
  const std::lock_guard lock(engine.mutex);
  const auto found = engine.seen.find(name);
  return found == engine.seen.end() ? 0 : found->second;
}

__attribute__((visibility("default"))) void dcgm_sim_reset() {
  Engine& engine = Engine::get();
  const std::lock_guard lock(engine.mutex);
  engine.settings.clear();
  clock_was_set_by = 0;
  clock_stands_at = 0;
  engine.seen.clear();
  engine.forget_client();
  engine.connection = 0;
  engine.embedded = false;
  engine.driver.close();
}

}  // extern "C"

}  // namespace gpuledger::dcgm
