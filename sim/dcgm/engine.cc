// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <thread>

#include "sample/dcgm/dcgm_value.h"

namespace gpuledger::sim_dcgm {
namespace {

constexpr size_t kMostKept = 8192;  // 15 seconds of lists of 54 processes

}  // namespace

Value integer(uint64_t value) {
  Value out;
  out.i64 = static_cast<int64_t>(value);
  return out;
}

Value number(double value) {
  Value out;
  out.type = 'd';
  out.dbl = value;
  return out;
}

Value words(std::string text) {
  Value out;
  out.type = 's';
  out.text = std::move(text);
  return out;
}

// The status is an error, and the value is the blank for "not supported".
Value refusal(char type, dcgm::Return status) {
  Value out;
  out.type = type;
  out.status = status;
  out.i64 = dcgm::kBlank64 + 2;
  out.dbl = dcgm::kBlankDouble + 2;
  out.text = "<<<NOT_SUPPORTED>>>";
  return out;
}

std::atomic<Micros> clock_was_set_by = 0;
std::atomic<Micros> clock_stands_at = 0;

Micros wall_now() {
  if (clock_stands_at != 0) return clock_was_set_by + clock_stands_at;
  return clock_was_set_by +
         std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
             .count();
}

Engine& Engine::get() {
  static Engine* const engine = [] {
    auto* const made = new Engine;  // a thread that hangs in here may outlive main
    try {
      std::thread([made] { made->look_by_itself(); }).detach();
    } catch (const std::system_error&) {
      // No thread can be made: fields are read only when a client calls.
    }
    return made;
  }();
  return *engine;
}

// Reads watched fields even if no client calls.
void Engine::look_by_itself() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::lock_guard lock(mutex);
    if (connection != 0 && !on("dead") && !on("hang")) update();
  }
}

bool Engine::on(const char* name) {
  const auto setting = settings.find(name);
  return setting != settings.end() && setting->second != 0;
}

// For tests of whole programs, which cannot call dcgm_sim_set: lines "name value".
void Engine::read_control_file() {
  const char* path = std::getenv("DCGM_SIM_CONTROL");
  if (!path) return;
  std::ifstream file(path);
  std::string name;
  double value = 0;
  while (file >> name >> value) settings[name] = value;
}

std::vector<dcgm::Entity> Engine::members(dcgm::Group group) {
  if (group != dcgm::kAllGpus) return groups[group];
  std::vector<dcgm::Entity> all;
  for (unsigned i = 0; i < driver.gpus(); ++i) all.push_back({dcgm::kEntityGpu, i});
  return all;
}

void Engine::keep(const Key& key, std::vector<Value> values) {
  auto& kept = memory[key];
  const auto& [kind, id, field] = key;
  Micros at = wall_now();
  for (Value& value : values) {
    // No two values of a field have the same time: the entries of a list, which are read at once, are 1 us apart.
    const auto same = [&](const Value& other) { return other.at == at; };
    while (std::any_of(kept.begin(), kept.end(), same)) ++at;
    value.at = at;
    if (field == 205 && value.status == dcgm::kOk) {
      dcgm::AccountingStats stats;
      std::copy(value.blob.begin(), value.blob.end(), reinterpret_cast<char*>(&stats));
      if (stats.activeTimeUsec == 0) continue;
      const bool fresh = accounted.insert({id, {stats.pid, stats.startTimestamp}}).second || on("repeat_records");
      if (!fresh) continue;
    }
    // Sorted by time, even if the clock was set back.
    const auto later = [&](const Value& other) { return other.at > value.at; };
    kept.insert(std::find_if(kept.begin(), kept.end(), later), std::move(value));
  }
  while (kept.size() > kMostKept) kept.pop_front();
}

void Engine::update() {
  if (on("no_nvml") || !driver.open()) return;
  const Micros now = wall_now();
  for (auto& [key, watch] : watches) {
    if (now < watch.next && watch.next <= now + watch.every) continue;
    watch.next = now + watch.every;
    const auto& [kind, id, field] = key;
    if (on("no_lists") && (field == 220 || field == 221)) continue;
    std::vector<Value> values = read_field(driver, kind, id, field);
    const bool gone = !values.empty() && values.front().status == dcgm::kNvmlNotLoaded;
    if (field == 205 && on("accounting_unsupported")) values = {refusal('b', dcgm::kNotSupported)};
    keep(key, std::move(values));
    if (gone) {
      driver.close();  // and opened anew with the next update
      return;
    }
  }
}

void Engine::forget_client() {
  watches.clear();
  memory.clear();
  groups.clear();
  field_groups.clear();
  accounted.clear();
  for (auto it = seen.begin(); it != seen.end();) it = it->first.starts_with("watched:") ? seen.erase(it) : ++it;
}

}  // namespace gpuledger::sim_dcgm
