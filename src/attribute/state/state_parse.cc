// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "attribute/state/state_text.h"
#include "base/utf8.h"

namespace gpuledger::attribute {
namespace {

using Json = nlohmann::json;

// One kilowatt for 36 years: higher values are errors, and sums of a few do not overflow.
constexpr int64_t kMostMicrojoules = int64_t{1} << 60;

constexpr int64_t kMostMilliwatts = 1'000'000'000;

// A restart every second for 30 years.
constexpr int64_t kMostRuns = 1'000'000'000;

// Like nlohmann's exceptions thrown only in this file and caught in parse_state.
struct Refused {
  std::string why;
};

std::string read_bytes(const Json& json) {
  std::string bytes;
  std::string_view rest = json.get_ref<const std::string&>();
  while (!rest.empty()) {
    const Utf8Character byte = decode_utf8(rest);
    if (!byte.valid || byte.code > 0xff) throw Refused{"a name is not encoded as bytes"};
    bytes += static_cast<char>(byte.code);
    rest.remove_prefix(byte.length);
  }
  return bytes;
}

std::string bytes_or_none(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found == json.end() ? std::string() : read_bytes(*found);
}

int64_t whole(const Json& json, int64_t least, int64_t most) {
  if (!json.is_number_integer()) throw Refused{"a count is not an integer"};
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(most))
    throw Refused{"a count is too high"};
  const auto number = json.get<int64_t>();
  if (number < least || number > most) throw Refused{"a count is out of range"};
  return number;
}

uint64_t unsigned_whole(const Json& json) {
  if (!json.is_number_unsigned()) throw Refused{"a count is not an integer"};
  return json.get<uint64_t>();
}

uint32_t small(const Json& json) {
  return static_cast<uint32_t>(whole(json, 0, std::numeric_limits<uint32_t>::max()));
}

Energy energy(const Json& json) {
  return Energy::microjoules(whole(json, 0, kMostMicrojoules));
}

Nanoseconds time(const Json& json) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;  // the year 2116; a difference does not overflow
  return Nanoseconds(whole(json, -kMost, kMost));
}

double number(const Json& json) {
  const auto value = json.get<double>();
  if (!std::isfinite(value)) throw Refused{"a number is not finite"};
  return value;
}

double number_or_zero(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? 0 : number(*found);
}

std::optional<Bytes> bytes_if_any(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? std::nullopt : std::optional(Bytes{unsigned_whole(*found)});
}

Booked booked(const Json& json) {
  Booked result;
  result.alone = energy(json.at(0));
  result.shared = energy(json.at(1));
  if (json.size() > 2) result.gpu_time = Nanoseconds(whole(json[2], 0, std::numeric_limits<int64_t>::max() / 4));
  return result;
}

JobFacts job_of(const Json& json) {
  JobFacts job;
  job.account = bytes_or_none(json, "account");
  job.partition = bytes_or_none(json, "partition");
  if (json.contains("gpus")) job.gpus = small(json["gpus"]);
  if (json.contains("started")) job.started = number(json["started"]);
  job.restarted = json.value("restarted", false);
  return job;
}

OwnerKind kind_of_owner(const Json& json) {
  const std::string word = read_bytes(json.at("kind"));
  for (const OwnerKindRow& row : kOwnerKinds) {
    if (row.word == word) return row.kind;
  }
  throw Refused{"an owner has an unknown kind"};
}

Owner owner(const Json& json) {
  Owner result;
  result.kind = kind_of_owner(json);
  for (const OwnerField& field : kOwnerFields) result.*field.value = bytes_or_none(json, std::string(field.name));
  return result;
}

ProcKey process_key(const Json& json) {
  return {small(json.at("pid")), unsigned_whole(json.at("start_ticks"))};
}

AccountState account(const Json& json) {
  AccountState result;
  result.identity.key = process_key(json);
  result.identity.name = read_bytes(json.at("name"));
  if (json.contains("start_seconds")) result.identity.start_time_seconds = number(json["start_seconds"]);
  result.identity.container_id = bytes_or_none(json, "container_id");
  result.identity.uid = bytes_or_none(json, "uid");
  result.identity.user_name = bytes_or_none(json, "user_name");
  result.identity.owner = owner(json.at("owner"));
  result.identity.owner_inferred = json.value("owner_inferred", false);
  if (json.contains("mig_id")) result.mig_id = MigId{small(json["mig_id"].at(0)), small(json["mig_id"].at(1))};
  if (json.contains("mig") && result.mig_id) {
    const Json& mig = json["mig"];
    result.mig = MigInstance{.uuid = read_bytes(mig.at("uuid")),
                             .id = *result.mig_id,
                             .profile = read_bytes(mig.at("profile")),
                             .compute_slices = small(mig.at("slices")),
                             .memory_total = {},
                             .memory_used = {}};
  }
  result.booked = booked(json.at("booked"));
  if (json.contains("inherited")) result.inherited = booked(json["inherited"]);
  result.static_energy = energy(json.at("static_uj"));
  result.memory_peak = bytes_if_any(json, "memory_peak");
  result.compute = json.value("compute", false);
  result.graphics = json.value("graphics", false);
  result.has_encoded = json.value("encoded", false);
  result.has_decoded = json.value("decoded", false);
  // Version 1 had other names, and other signatures, which are learned again.
  const bool first_version = json.contains("fair_joules");
  result.claimed = number(json.at(first_version ? "fair_joules" : "claimed_joules"));
  result.error = std::max(0.0, number(json.at(first_version ? "doubt_joules" : "error_joules")));
  if (json.contains("gone_ns")) result.gone_for = std::max(time(json["gone_ns"]), Nanoseconds(0));
  if (json.contains("idle")) {
    const Json& idle = json["idle"];
    result.idle = {std::max(time(idle.at(0)), Nanoseconds(0)), small(idle.at(1)), idle.at(2).get<bool>()};
  }
  return result;
}

PowerFloor::Memory floor_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  return {Power::milliwatts(whole(found->at(0), 0, kMostMilliwatts)), small(found->at(1))};
}

std::optional<SignatureMemory> signature_of(const Json& json) {
  SignatureMemory memory;
  if (!json.contains("precision")) return std::nullopt;
  const Json& precision = json["precision"];
  const Json& shift = json.at("shift");
  // Other features: learned again.
  if (precision.size() != memory.precision.size() || shift.size() != memory.shift.size()) return std::nullopt;
  for (size_t i = 0; i < memory.precision.size(); ++i) memory.precision[i] = number(precision.at(i));
  for (size_t i = 0; i < memory.shift.size(); ++i) memory.shift[i] = number(shift.at(i));
  memory.share = std::min(1.0, number(json.at("share")));
  return memory;
}

// Sums over a file may exceed 64 bits.
__extension__ using Wide = __int128;

void check_balance(const DeviceState& device) {
  std::map<Owner, Wide> owners;
  Wide sum = 0;
  for (Energy part : device.unattributed) sum += part.microjoules();
  for (const OwnerState& entry : device.owners) {
    owners[entry.owner] = entry.booked.total().microjoules();
    sum += entry.booked.total().microjoules();
  }
  for (const ClosedState& entry : device.closed) sum += entry.booked.total().microjoules();
  if (sum != device.measured.microjoules() || owners.size() != device.owners.size()) {
    throw Refused{"its books do not balance"};
  }
  for (const AccountState& entry : device.accounts) {
    const Wide part = Wide{entry.booked.total().microjoules()} + entry.inherited.total().microjoules();
    if ((owners[entry.identity.owner] -= part) < 0) throw Refused{"an owner has less than its processes"};
    if (entry.static_energy > entry.booked.total()) throw Refused{"a process has less than its static part"};
  }
}

DeviceState device_of(const Json& json) {
  DeviceState device;
  device.uuid.text = read_bytes(json.at("uuid"));
  device.boot_id = read_bytes(json.at("boot_id"));
  device.read_at = {time(json.at("steady_ns")), time(json.at("wall_ns"))};
  if (json.contains("counter_uj")) device.counter = energy(json["counter_uj"]);
  if (json.contains("power_mw")) device.power = Power::milliwatts(whole(json["power_mw"], 0, kMostMilliwatts));
  if (json.contains("doubted")) {
    const Json& doubted = json["doubted"];
    device.doubted = {energy(doubted.at(0)), energy(doubted.at(1)), small(doubted.at(2)), {}};
    if (device.doubted->last < device.doubted->first) throw Refused{"its counter fell while it rose"};
  }
  device.measured = energy(json.at("measured_uj"));
  if (json.contains("opening")) {
    const Json& opening = json["opening"];
    device.opening = {time(opening.at(0)), static_cast<uint64_t>(whole(opening.at(1), 1, kMostRuns))};
  }
  if (json.contains("counted_before_uj")) device.counted_before = energy(json["counted_before_uj"]);
  const Json& reasons = json.at("unattributed_uj");
  if (reasons.size() != kReasonCount) throw Refused{"its list of reasons is different"};
  for (size_t i = 0; i < kReasonCount; ++i) device.unattributed[i] = energy(reasons.at(i));
  for (const Json& xid : json.at("xids")) {
    const uint64_t number = unsigned_whole(xid.at(0));
    device.xids[number] = unsigned_whole(xid.at(1));
    if (xid.size() > 2) device.xid_seen[number] = time(xid.at(2));
  }
  device.idle_floor = floor_of(json, "idle_floor_mw");
  device.resident_floor = floor_of(json, "resident_floor_mw");
  if (json.contains("self_check")) {
    const Json& check = json["self_check"];
    device.self_check = {unsigned_whole(check.at(0)), number(check.at(1)), number(check.at(2))};
  }
  for (const Json& entry : json.at("owners")) {
    const double error = std::max(0.0, number_or_zero(entry, "error_joules"));
    OwnerState& saved = device.owners.emplace_back();
    saved.owner = owner(entry.at("owner"));
    saved.booked = booked(entry.at("booked"));
    saved.error = error;
    saved.memory_peak = bytes_if_any(entry, "memory_peak");
    saved.uid = bytes_or_none(entry, "uid");
    saved.user_name = bytes_or_none(entry, "user_name");
    saved.users_differ = entry.value("users_differ", false);
    saved.steps_closed = entry.value("steps_closed", false);
    if (entry.contains("slurm")) saved.job = job_of(entry["slurm"]);
    if (entry.contains("gone_ns")) saved.gone_for = std::max(time(entry["gone_ns"]), Nanoseconds(0));
  }
  for (const Json& entry : json.value("closed", Json::array())) {
    device.closed.push_back({kind_of_owner(entry), bytes_or_none(entry, "namespace"), booked(entry.at("booked"))});
  }
  for (const Json& entry : json.at("processes")) device.accounts.push_back(account(entry));
  for (const Json& entry : json.at("signatures")) {
    if (const auto signature = signature_of(entry)) device.learned.signatures[process_key(entry)] = *signature;
  }
  for (const Json& entry : json.value("kin", Json::array())) {
    if (const auto signature = signature_of(entry)) device.learned.kin[unsigned_whole(entry.at("kin"))] = *signature;
  }
  check_balance(device);
  return device;
}

EngineState parse_body(std::string_view body) {
  const Json json = Json::parse(body);
  EngineState state;
  state.number = unsigned_whole(json.at("number"));
  for (const Json& entry : json.at("devices")) state.devices.push_back(device_of(entry));
  return state;
}

// The version may have any number of digits; the rest of the line depends on it.
Result<int> version_of(std::string_view text) {
  if (!text.starts_with(kStateMagic)) return Error{Code::kMalformed, "is not a state file of gpu-ledger"};
  const std::string_view rest = text.substr(kStateMagic.size());
  uint64_t version = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), version);
  if (parsed.ec != std::errc() || version == 0) return Error{Code::kMalformed, "is not a state file of gpu-ledger"};
  if (version > kStateVersion) {
    return Error{Code::kNotSupported, "is of version " + std::to_string(version) + ", this program reads up to " +
                                          std::to_string(kStateVersion)};
  }
  return static_cast<int>(version);
}

}  // namespace

Result<EngineState> parse_state(std::string_view text) {
  GL_TRY(version, version_of(text));
  const size_t line_end = text.find('\n');
  const std::string_view body = line_end == text.npos ? "" : text.substr(line_end + 1);
  if (line_end == text.npos || text.substr(0, line_end + 1) != state_header(body, version)) {
    return Error{Code::kMalformed, "is damaged: its checksum does not match"};
  }
  try {
    return parse_body(body);
  } catch (const Refused& refused) {
    return Error{Code::kMalformed, "cannot be used: " + refused.why};
  } catch (const Json::exception& error) {
    return Error{Code::kMalformed, std::string("cannot be used: ") + error.what()};
  }
}

}  // namespace gpuledger::attribute
