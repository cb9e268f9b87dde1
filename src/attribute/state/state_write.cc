// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <charconv>
#include <cmath>
#include <concepts>

#include "attribute/state/state_text.h"
#include "base/json_frame.h"

// Without a JSON tree, because the state is written in every cycle.
namespace gpuledger::attribute {
namespace {

// For parse_state: exact integers, bytes unchanged.
class JsonText : public JsonFrame<JsonText> {
 public:
  void line() { text_ += '\n'; }

  template <std::integral T>
  void value(T number) {
    separate();
    append(number);
  }
  void value(bool yes) {
    separate();
    text_ += yes ? "true" : "false";
  }
  void value(double number) {
    separate();
    append(std::isfinite(number) && number != 0 ? number : 0.0);  // JSON has no others, and "-0" is read as an integer
  }
  void value(Energy energy) { value(energy.microjoules()); }
  void value(Nanoseconds time) { value(static_cast<int64_t>(time.count())); }
  void value(std::string_view bytes);

 private:
  template <typename T>
  void append(T number) {
    char digits[40];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    text_.append(digits, end);
  }
};

void JsonText::value(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  separate();
  text_ += '"';
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      text_ += c;
    } else {
      text_.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  text_ += '"';
}

void write_booked(JsonText& json, std::string_view key, const Booked& booked) {
  json.name(key);
  json.open('[');
  json.value(booked.alone);
  json.value(booked.shared);
  if (booked.gpu_time) json.value(*booked.gpu_time);
  json.close(']');
}

void write_owner(JsonText& json, const Owner& owner) {
  json.name("owner");
  json.open('{');
  json.field("kind", owner_kind(owner.kind).word);
  for (const OwnerField& field : kOwnerFields) json.field_if_any(field.name, owner.*field.value);
  json.close('}');
}

void write_job(JsonText& json, const JobFacts& job) {
  if (job.empty()) return;
  json.name("slurm");
  json.open('{');
  json.field_if_any("account", job.account);
  json.field_if_any("partition", job.partition);
  if (job.gpus) json.field("gpus", uint64_t{*job.gpus});
  if (job.started) json.field("started", *job.started);
  if (job.restarted) json.field("restarted", true);
  json.close('}');
}

void write_process_key(JsonText& json, const ProcKey& key) {
  json.field("pid", key.pid);
  json.field("start_ticks", key.start_ticks);
}

void write_mig(JsonText& json, const AccountState& account) {
  if (account.mig_id) {
    json.name("mig_id");
    json.open('[');
    json.value(account.mig_id->gpu_instance);
    json.value(account.mig_id->compute_instance);
    json.close(']');
  }
  if (!account.mig) return;
  json.name("mig");
  json.open('{');
  json.field("uuid", std::string_view(account.mig->uuid));
  json.field("profile", std::string_view(account.mig->profile));
  json.field("slices", account.mig->compute_slices);
  json.close('}');
}

void write_account(JsonText& json, const AccountState& account) {
  json.open('{');
  write_process_key(json, account.identity.key);
  json.field("name", std::string_view(account.identity.name));
  if (account.identity.start_time_seconds) json.field("start_seconds", *account.identity.start_time_seconds);
  json.field_if_any("container_id", account.identity.container_id);
  json.field_if_any("uid", account.identity.uid);
  json.field_if_any("user_name", account.identity.user_name);
  write_owner(json, account.identity.owner);
  if (account.identity.owner_inferred) json.field("owner_inferred", true);
  write_mig(json, account);
  write_booked(json, "booked", account.booked);
  if (account.inherited.total() > Energy() || account.inherited.gpu_time) {
    write_booked(json, "inherited", account.inherited);
  }
  json.field("static_uj", account.static_energy);
  if (account.memory_peak) json.field("memory_peak", account.memory_peak->count);
  if (account.compute) json.field("compute", true);
  if (account.graphics) json.field("graphics", true);
  if (account.has_encoded) json.field("encoded", true);
  if (account.has_decoded) json.field("decoded", true);
  json.field("claimed_joules", account.claimed);
  json.field("error_joules", account.error);
  if (account.gone_for) json.field("gone_ns", *account.gone_for);
  if (account.idle) {
    json.name("idle");
    json.open('[');
    json.value(account.idle->quiet_for);
    json.value(account.idle->quiet_evaluations);
    json.value(account.idle->worked);
    json.close(']');
  }
  json.close('}');
  json.line();
}

void write_floor(JsonText& json, std::string_view key, const PowerFloor::Memory& floor) {
  if (floor.windows == 0) return;
  json.name(key);
  json.open('[');
  json.value(floor.value.milliwatts());
  json.value(floor.windows);
  json.close(']');
}

void write_doubted(JsonText& json, const EnergyMeter::Course& course) {
  json.name("doubted");
  json.open('[');
  json.value(course.first);
  json.value(course.last);
  json.value(uint64_t{course.readings});
  json.close(']');
}

void write_opening(JsonText& json, const BooksOpening& opening) {
  json.name("opening");
  json.open('[');
  json.value(opening.at);
  json.value(opening.run);
  json.close(']');
}

void write_self_check(JsonText& json, const SelfCheck::Memory& memory) {
  if (memory.comparisons == 0) return;
  json.name("self_check");
  json.open('[');
  json.value(memory.comparisons);
  json.value(memory.wrong_joules);
  json.value(memory.compared_joules);
  json.close(']');
}

void write_signature(JsonText& json, const SignatureMemory& memory) {
  json.name("precision");
  json.open('[');
  for (double value : memory.precision) json.value(value);
  json.close(']');
  json.name("shift");
  json.open('[');
  for (double value : memory.shift) json.value(value);
  json.close(']');
  json.field("share", memory.share);
  json.close('}');
  json.line();
}

void write_learned(JsonText& json, const EstimatorMemory& learned) {
  json.name("signatures");
  json.open('[');
  for (const auto& [process, memory] : learned.signatures) {
    json.open('{');
    write_process_key(json, process);
    write_signature(json, memory);
  }
  json.close(']');
  json.name("kin");
  json.open('[');
  for (const auto& [kin, memory] : learned.kin) {
    json.open('{');
    json.field("kin", kin);
    write_signature(json, memory);
  }
  json.close(']');
}

void write_device(JsonText& json, const DeviceState& device) {
  json.open('{');
  json.field("uuid", std::string_view(device.uuid.text));
  json.field("boot_id", std::string_view(device.boot_id));
  json.field("steady_ns", device.read_at.steady);
  json.field("wall_ns", device.read_at.wall);
  if (device.counter) json.field("counter_uj", *device.counter);
  if (device.power) json.field("power_mw", device.power->milliwatts());
  if (device.doubted) write_doubted(json, *device.doubted);
  json.field("measured_uj", device.measured);
  if (device.opening) write_opening(json, *device.opening);
  if (device.counted_before) json.field("counted_before_uj", *device.counted_before);
  json.name("unattributed_uj");
  json.open('[');
  for (Energy part : device.unattributed) json.value(part);
  json.close(']');
  json.name("xids");
  json.open('[');
  for (const auto& [xid, count] : device.xids) {
    json.open('[');
    json.value(xid);
    json.value(count);
    if (const auto seen = device.xid_seen.find(xid); seen != device.xid_seen.end()) json.value(seen->second);
    json.close(']');
  }
  json.close(']');
  write_floor(json, "idle_floor_mw", device.idle_floor);
  write_floor(json, "resident_floor_mw", device.resident_floor);
  write_self_check(json, device.self_check);
  json.name("owners");
  json.open('[');
  for (const OwnerState& owner : device.owners) {
    json.open('{');
    write_owner(json, owner.owner);
    write_booked(json, "booked", owner.booked);
    json.field("error_joules", owner.error);
    if (owner.memory_peak) json.field("memory_peak", owner.memory_peak->count);
    json.field_if_any("uid", owner.uid);
    json.field_if_any("user_name", owner.user_name);
    if (owner.users_differ) json.field("users_differ", true);
    write_job(json, owner.job);
    if (owner.steps_closed) json.field("steps_closed", true);
    if (owner.gone_for) json.field("gone_ns", *owner.gone_for);
    json.close('}');
    json.line();
  }
  json.close(']');
  json.name("closed");
  json.open('[');
  for (const ClosedState& closed : device.closed) {
    json.open('{');
    json.field("kind", owner_kind(closed.kind).word);
    json.field_if_any("namespace", closed.name_space);
    write_booked(json, "booked", closed.booked);
    json.close('}');
    json.line();
  }
  json.close(']');
  json.name("processes");
  json.open('[');
  for (const AccountState& account : device.accounts) write_account(json, account);
  json.close(']');
  write_learned(json, device.learned);
  json.close('}');
  json.line();
}

}  // namespace

std::string state_header(std::string_view body, int version) {
  // From version 3 on the checksum includes the version: a changed digit must not make it an older one.
  const std::string digits = version < 3 ? "" : std::to_string(version);
  const auto start = ::crc32_z(0, reinterpret_cast<const Bytef*>(digits.data()), digits.size());
  const auto checksum = ::crc32_z(start, reinterpret_cast<const Bytef*>(body.data()), body.size());
  char hex[9];
  std::snprintf(hex, sizeof hex, "%08lx", checksum & 0xffffffffUL);
  std::string header(kStateMagic);
  return header + std::to_string(version) + " crc32:" + hex + " " + std::to_string(body.size()) + "\n";
}

std::string write_state(const EngineState& state) {
  JsonText json;
  json.open('{');
  json.field("number", state.number);
  json.name("devices");
  json.open('[');
  for (const DeviceState& device : state.devices) write_device(json, device);
  json.close(']');
  json.close('}');
  const std::string body = json.take() + "\n";
  return state_header(body) + body;
}

}  // namespace gpuledger::attribute
