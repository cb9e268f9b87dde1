// SPDX-License-Identifier: Apache-2.0
#include "app/runtime/name_recorder.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstdio>
#include <utility>

#include "attribute/books/kin.h"
#include "sample/replay/trace_lines.h"

namespace gpuledger::app {
namespace {

using replay::Trace;

constexpr size_t kKeyBytes = 32;
constexpr size_t kHashBytes = 8;
// A name may come late (exec, the kubelet); as often as serve asks.
constexpr Nanoseconds kAskAgain = std::chrono::seconds(1);

bool same_names(const Trace::Process& a, const Trace::Process& b) {
  return a.name == b.name && a.owner == b.owner;
}

}  // namespace

NameRecorder::NameRecorder(std::unique_ptr<IdentitySource> identities, GpuUuid gpu, RecordNames form, std::string key)
    : identities_(std::move(identities)), form_(form), key_(std::move(key)) {
  auto description = std::make_shared<DeviceDescription>();
  description->uuid = std::move(gpu);
  gpu_ = std::move(description);
}

Result<std::unique_ptr<NameRecorder>> NameRecorder::open(std::unique_ptr<IdentitySource> identities, GpuUuid gpu,
                                                         RecordNames form) {
  std::string key(kKeyBytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) != 1) {
    return Error{Code::kUnavailable, "no random key to hash names with"};
  }
  return std::unique_ptr<NameRecorder>(new NameRecorder(std::move(identities), std::move(gpu), form, std::move(key)));
}

void NameRecorder::record(const std::set<Pid>& pids, const Timestamp& at, Nanoseconds t, std::string& out) {
  if (pids == asked_ && asked_at_ && at.steady - *asked_at_ < kAskAgain) return;
  asked_ = pids;
  asked_at_ = at.steady;
  SampleBatch batch;
  batch.at = at;
  batch.processes_scanned = true;
  DeviceSample& device = batch.devices.emplace_back();
  device.description = gpu_;
  device.up = true;
  for (const Pid pid : pids) {
    ProcessSample& process = device.processes.emplace_back();
    process.pid = pid;
    process.listed = true;
  }
  const auto map = identities_->resolve(batch);
  std::erase_if(written_, [&](const auto& entry) { return !pids.contains(entry.first); });
  for (const auto& [pid, identity] : map->by_pid) {
    if (identity.key.start_ticks == 0) continue;
    Trace::Process process = named(identity);
    const auto before = written_.find(pid);
    if (before != written_.end() && same_names(before->second, process)) continue;
    process.t = t;
    write_process(out, process);
    written_.insert_or_assign(pid, std::move(process));
  }
}

// Hashed: a replay finds the same kin as with plain names. The hash of a pod's name would not do, because its workload
// would be lost, so the fields that kin needs have the hash of the kin.
Trace::Process NameRecorder::named(const ProcessIdentity& identity) const {
  Trace::Process process;
  process.pid = identity.key.pid;
  process.owner.kind = identity.owner.kind;
  const auto fields = owner_kind(identity.owner.kind).kin;
  if (form_ == RecordNames::kPlain) {
    process.name = identity.name;
    for (const KinField& field : fields) process.owner.*field.value = identity.owner.*field.value;
    return process;
  }
  process.name = hash("name", identity.name);
  const uint64_t kin = attribute::kin_of(identity);
  for (const KinField& field : fields) {
    if (kin != 0 && field.use != KinField::Use::kMayBeEmpty)
      process.owner.*field.value = hash("kin", std::to_string(kin));
  }
  return process;
}

// In hexadecimal: no controller's suffix, so that it stays what it is as the name of a workload.
std::string NameRecorder::hash(const char* use, const std::string& text) const {
  const std::string message = std::string(use) + "\n" + text;
  unsigned char bytes[EVP_MAX_MD_SIZE] = {};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), bytes, &size) == nullptr) {
    return {};
  }
  std::string hex;
  for (size_t i = 0; i < kHashBytes; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
    hex += digits;
  }
  return hex;
}

}  // namespace gpuledger::app
