// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/sample.h"
#include "sample/dcgm/dcgm_error.h"
#include "sample/dcgm/dcgm_library.h"
#include "sample/dcgm/dcgm_value.h"

namespace gpuledger::dcgm {

inline constexpr const char* kDefaultAddress = "127.0.0.1:5555";

struct Where {
  std::string address;    // HOST[:PORT], unix:/PATH or /PATH; empty: kDefaultAddress
  bool embedded = false;  // run the engine in this process
  unsigned timeout_ms = 2000;
};

// All calls into libdcgm come from one thread, through one of these, which counts failures and times.
struct CallBook {
  std::map<std::string, uint64_t> errors;
  std::map<std::string, DurationHistogram> durations;
};

// A live connection to an engine. Any call may take long (60 s), so none is made from the sampler's thread. After the
// first answer that says so the engine counts as gone.
class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(std::shared_ptr<Library> library, const Where& where, CallBook& book);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool gone() const { return gone_; }
  const std::string& engine_version() const { return engine_version_; }

  // Only the caller knows what is a failure, so the caller counts failures.
  template <typename... Parameters, typename... Arguments>
  Return call(const char* symbol, Return (*function)(Handle, Parameters...), Arguments... arguments) {
    const auto began = std::chrono::steady_clock::now();
    const Return result = function(handle_, arguments...);
    finish(symbol, std::chrono::steady_clock::now() - began, result);
    return result;
  }
  const FunctionTable& functions() const { return library_->functions; }
  void count_failure(Return result) { ++book_.errors[code_name(code_of(result))]; }
  void count_failure(const char* kind) { ++book_.errors[kind]; }

  // Reads a field of an entity from the engine's cache or (live) from the driver. If the engine is older than the
  // library and lacks that call, each GPU's history is read for its last value, which needs a watch. Readings point
  // into the connection's own buffer and are valid until the next call.
  struct Answer {
    Entity entity;
    Reading reading;
  };
  std::vector<Answer> read_latest(std::vector<Entity> entities, std::vector<FieldId> fields, bool live);
  // A GPU's field in that time, oldest first, at most kHistoryLength. If the engine's clock was set back, it has values
  // in the future.
  static constexpr int kHistoryLength = 256;
  std::vector<Reading> read_history(unsigned gpu, FieldId field, int64_t since_us, int64_t until_us,
                                    int order = kOrderAscending);

  Result<FieldGroup> create_fields(std::span<const FieldId> fields);
  Result<Group> create_group(const std::vector<Entity>& members);
  Return watch(Group group, FieldGroup fields, Nanoseconds every, double keep_seconds);
  void unwatch(Group group, FieldGroup fields);

 private:
  Connection(std::shared_ptr<Library> library, Handle handle, bool embedded, CallBook& book)
      : library_(std::move(library)), handle_(handle), embedded_(embedded), book_(book) {}
  Status check();
  std::vector<Answer> read_each(const std::vector<Entity>& entities, const std::vector<FieldId>& fields);
  void finish(const char* symbol, Nanoseconds took, Return result);

  const std::shared_ptr<Library> library_;
  const Handle handle_;
  const bool embedded_;
  CallBook& book_;
  std::string engine_version_;
  bool gone_ = false;
  bool old_engine_ = false;
  uint64_t names_ = 0;
  std::vector<FieldValue_v2> latest_;
  std::vector<FieldValue_v1> history_;
};

}  // namespace gpuledger::dcgm
