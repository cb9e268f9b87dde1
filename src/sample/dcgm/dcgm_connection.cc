// SPDX-License-Identifier: Apache-2.0
#include "sample/dcgm/dcgm_connection.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace gpuledger::dcgm {

namespace {

constexpr size_t kMostReadings = 4096;  // 4 KiB each
constexpr size_t kEntitiesAtOnce = 32;  // older engines take 64

#define GL_CALL(connection, symbol, ...) \
  (connection).call(#symbol, (connection).functions().symbol __VA_OPT__(, ) __VA_ARGS__)

std::string unix_path(const std::string& address) {
  constexpr std::string_view kPrefix = "unix:";
  if (address.starts_with(kPrefix)) return address.substr(kPrefix.size());
  return address.starts_with('/') ? address : std::string();
}

// Otherwise a missing engine and a socket that this user may not open give the same answer.
Status check_socket(const std::string& path) {
  if (::access(path.c_str(), W_OK) == 0) return ok_status();
  const bool refused = errno == EACCES;
  return Error{
      refused ? Code::kPermission : Code::kUnavailable,
      path + ": " + std::strerror(errno) +
          (refused ? "; this user may not write to the engine's socket" : "; is nv-hostengine running with -d?")};
}

Status check_environment() {
  // Each changes the whole process: the first its working directory, the second which driver the engine loads.
  for (const char* name : {"DCGM_HOME_DIR", "NVML_INJECTION_MODE"}) {
    if (std::getenv(name)) {
      return Error{Code::kMalformed,
                   std::string("--dcgm-embedded: unset ") + name + ", which changes how libdcgm works"};
    }
  }
  return ok_status();
}

Result<Handle> start_embedded(const FunctionTable& dcgm) {
  GL_TRY_STATUS(check_environment());
  EmbeddedParams parameters{};
  parameters.version = kEmbeddedParamsVersion;
  parameters.opMode = kModeAuto;
  parameters.logFile = "-";
  parameters.severity = kSeverityNone;
  if (const Return result = dcgm.dcgmStartEmbedded_v2(&parameters); result != kOk) {
    return Error{code_of(result), describe("dcgmStartEmbedded_v2", result)};
  }
  // A second engine in one process returns success and this.
  if (parameters.handle == 0) return Error{Code::kUnavailable, "an embedded engine runs in this process already"};
  return parameters.handle;
}

Result<Handle> connect(const FunctionTable& dcgm, const Where& where) {
  const std::string address = where.address.empty() ? kDefaultAddress : where.address;
  const std::string path = unix_path(address);
  if (!path.empty()) { GL_TRY_STATUS(check_socket(path)); }
  ConnectParams parameters{};
  parameters.version = kConnectParamsVersion;
  parameters.persistAfterDisconnect = 0;  // leave nothing behind in a shared engine
  parameters.timeoutMs = where.timeout_ms;
  parameters.addressIsUnixSocket = path.empty() ? 0 : 1;
  Handle handle = 0;
  const Return result = dcgm.dcgmConnect_v2(path.empty() ? address.c_str() : path.c_str(), &parameters, &handle);
  // The handle is also written on failure, so only the result counts.
  if (result != kOk) {
    return Error{code_of(result), address + ": " + describe("dcgmConnect_v2", result) + "; is nv-hostengine running?"};
  }
  return handle;
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(std::shared_ptr<Library> library, const Where& where,
                                                     CallBook& book) {
  const FunctionTable& dcgm = library->functions;
  const Result<Handle> handle = where.embedded ? start_embedded(dcgm) : connect(dcgm, where);
  if (!handle.ok()) {
    ++book.errors[code_name(handle.error().code)];
    return handle.error();
  }
  std::unique_ptr<Connection> connection(new Connection(std::move(library), *handle, where.embedded, book));
  GL_TRY_STATUS(connection->check());
  return connection;
}

// A failed login may return success with an invalid handle.
Status Connection::check() {
  VersionInfo info{};
  info.version = kVersionInfoVersion;
  const Return result = GL_CALL(*this, dcgmHostengineVersionInfo, &info);
  if (result != kOk) {
    count_failure(result);
    return Error{code_of(result), describe("dcgmHostengineVersionInfo", result)};
  }
  engine_version_ = parse_version(info);
  return ok_status();
}

Connection::~Connection() {
  // Both also drop every watch and group of this connection; with a dead engine they return at once.
  if (embedded_) {
    GL_CALL(*this, dcgmStopEmbedded);
  } else {
    GL_CALL(*this, dcgmDisconnect);
  }
}

void Connection::finish(const char* symbol, Nanoseconds took, Return result) {
  book_.durations[symbol].observe(std::chrono::duration<double>(took).count());
  if (means_engine_gone(result)) gone_ = true;
}

std::vector<Connection::Answer> Connection::read_latest(std::vector<Entity> entities, std::vector<FieldId> fields,
                                                        bool live) {
  if (entities.empty() || fields.empty()) return {};
  if (old_engine_) return read_each(entities, fields);
  entities.resize(std::min(entities.size(), std::max<size_t>(1, kMostReadings / fields.size())));
  latest_.assign(entities.size() * fields.size(), FieldValue_v2{});
  for (size_t first = 0; first < entities.size(); first += kEntitiesAtOnce) {
    const size_t count = std::min(kEntitiesAtOnce, entities.size() - first);
    const Return result =
        GL_CALL(*this, dcgmEntitiesGetLatestValues, &entities[first], static_cast<unsigned>(count), fields.data(),
                static_cast<unsigned>(fields.size()), live ? kLiveValue : 0u, &latest_[first * fields.size()]);
    if (result == kFunctionNotFound) {
      old_engine_ = true;
      return read_each(entities, fields);
    }
    if (result != kOk) {
      count_failure(result);
      return {};
    }
  }
  std::vector<Answer> answers;
  for (const FieldValue_v2& value : latest_) {
    answers.push_back({{value.entityGroupId, value.entityId}, reading_of(value)});
  }
  return answers;
}

std::vector<Connection::Answer> Connection::read_each(const std::vector<Entity>& entities,
                                                      const std::vector<FieldId>& fields) {
  std::vector<Answer> answers;
  std::vector<FieldValue_v1> last;
  for (const Entity& entity : entities) {
    for (const FieldId field : fields) {
      if (entity.kind != kEntityGpu || gone_) continue;
      FieldValue_v1 value{};
      int count = 1;
      const Return result = GL_CALL(*this, dcgmGetMultipleValuesForField, static_cast<int>(entity.id), field, &count,
                                    0ll, 0ll, kOrderDescending, &value);
      if (result != kOk || count < 1) continue;
      last.push_back(value);
      answers.push_back({entity, {}});
    }
  }
  history_ = std::move(last);
  for (size_t i = 0; i < answers.size(); ++i) answers[i].reading = reading_of(history_[i]);
  return answers;
}

std::vector<Reading> Connection::read_history(unsigned gpu, FieldId field, int64_t since_us, int64_t until_us,
                                              int order) {
  history_.assign(kHistoryLength, FieldValue_v1{});
  int count = kHistoryLength;
  const Return result =
      GL_CALL(*this, dcgmGetMultipleValuesForField, static_cast<int>(gpu), field, &count,
              static_cast<long long>(since_us), static_cast<long long>(until_us), order, history_.data());
  std::vector<Reading> readings;
  if (result != kOk) {
    if (result != kNoData && result != kNotWatched && !means_unsupported(result)) count_failure(result);
    return readings;
  }
  for (int i = 0; i < std::min(count, kHistoryLength); ++i) {
    const Reading reading = reading_of(history_[static_cast<size_t>(i)]);
    // Else what was read before would count again.
    if (reading.at_us >= since_us && reading.at_us <= until_us) readings.push_back(reading);
  }
  return readings;
}

Result<FieldGroup> Connection::create_fields(std::span<const FieldId> fields) {
  // Names must be unique in the engine, also among programs like this one.
  const std::string name = "gpu-ledger-" + std::to_string(::getpid()) + "-" + std::to_string(++names_);
  FieldGroup group = 0;
  const Return result =
      GL_CALL(*this, dcgmFieldGroupCreate, static_cast<int>(fields.size()), fields.data(), name.c_str(), &group);
  if (result == kOk) return group;
  count_failure(result);
  return Error{code_of(result), describe("dcgmFieldGroupCreate", result)};
}

Result<Group> Connection::create_group(const std::vector<Entity>& members) {
  const std::string name = "gpu-ledger-" + std::to_string(::getpid()) + "-" + std::to_string(++names_);
  Group group = 0;
  Return result = GL_CALL(*this, dcgmGroupCreate, kGroupEmpty, name.c_str(), &group);
  if (result != kOk) {
    count_failure(result);
    return Error{code_of(result), describe("dcgmGroupCreate", result)};
  }
  size_t added = 0;
  for (const Entity& member : members) {
    result = GL_CALL(*this, dcgmGroupAddEntity, group, member.kind, member.id);
    if (result == kOk) ++added;
  }
  if (added > 0) return group;
  count_failure(result);
  GL_CALL(*this, dcgmGroupDestroy, group);
  return Error{code_of(result), describe("dcgmGroupAddEntity", result)};
}

Return Connection::watch(Group group, FieldGroup fields, Nanoseconds every, double keep_seconds) {
  const long long period = std::chrono::duration_cast<std::chrono::microseconds>(every).count();
  return GL_CALL(*this, dcgmWatchFields, group, fields, period, keep_seconds, 0);
}

void Connection::unwatch(Group group, FieldGroup fields) {
  GL_CALL(*this, dcgmUnwatchFields, group, fields);
  GL_CALL(*this, dcgmFieldGroupDestroy, fields);
  if (group != kAllGpus) GL_CALL(*this, dcgmGroupDestroy, group);
}

}  // namespace gpuledger::dcgm
