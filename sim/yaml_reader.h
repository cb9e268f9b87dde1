// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "scenario.h"

namespace gpuledger::sim {

// The first error in a scenario; later ones are ignored.
class ParseFailure {
 public:
  explicit ParseFailure(std::string source) : source_(std::move(source)) {}
  void report(const YAML::Node& at, const std::string& what);
  bool failed() const { return failed_; }
  const std::string& message() const { return message_; }

 private:
  std::string source_;
  std::string message_;
  bool failed_ = false;
};

// Reads one mapping key by key; absent keys keep their defaults. finish() refuses keys that were not read, so that a
// misspelt key is an error.
class MapReader {
 public:
  MapReader(const YAML::Node& node, std::string what, ParseFailure* failure);

  bool has(const char* key) const;
  YAML::Node child(const char* key);
  YAML::Node child_map(const char* key);
  YAML::Node child_list(const char* key);

  void text(const char* key, std::string* out);
  void number(const char* key, double* out, double low, double high);
  void whole(const char* key, uint64_t* out, uint64_t high);
  void whole(const char* key, unsigned* out, uint64_t high = 0xFFFFFFFEu);
  void flag(const char* key, bool* out);
  void seconds(const char* key, Millis* out);
  void bytes(const char* key, std::optional<uint64_t>* out);  // "40GiB", a number, "not available"

  void require(const char* key);
  void refuse(const char* key, const std::string& why);
  void finish();
  bool failed() const { return failure_->failed(); }
  const YAML::Node& node() const { return node_; }
  ParseFailure* failure() { return failure_; }

 private:
  YAML::Node node_;
  std::string what_;
  ParseFailure* failure_;
  std::set<std::string> known_;
};

// "1g.10gb" into slices and memory.
void parse_profile(MapReader* reader, MigSpec* out);
void parse_event(const YAML::Node& node, ParseFailure* failure, Scenario* scenario);
// An event without times, which begins at `at` and has no end yet (control.h).
void parse_command(const YAML::Node& node, Millis at, ParseFailure* failure, Scenario* scenario);
void parse_process(const YAML::Node& node, const std::vector<GpuSpec>& gpus, ParseFailure* failure, ProcessSpec* out);
void parse_allocation(const YAML::Node& node, const std::vector<GpuSpec>& gpus, ParseFailure* failure,
                      AllocationSpec* out);

}  // namespace gpuledger::sim
