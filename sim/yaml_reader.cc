// SPDX-License-Identifier: Apache-2.0
#include "yaml_reader.h"

#include <cmath>
#include <cstdlib>

namespace gpuledger::sim {

void ParseFailure::report(const YAML::Node& at, const std::string& what) {
  if (failed_) return;
  failed_ = true;
  message_ = source_;
  // An undefined node has no mark and throws when asked for one.
  if (at.IsDefined() && at.Mark().line >= 0) message_ += ":" + std::to_string(at.Mark().line + 1);
  message_ += ": " + what;
}

MapReader::MapReader(const YAML::Node& node, std::string what, ParseFailure* failure)
    : node_(node), what_(std::move(what)), failure_(failure) {
  if (!node_.IsMap()) {
    failure_->report(node_, what_ + " must be a mapping of settings");
    node_.reset(YAML::Node(YAML::NodeType::Map));  // assigning would change the document itself
  }
}

bool MapReader::has(const char* key) const {
  const YAML::Node& map = node_;
  return map[key].IsDefined() && !map[key].IsNull();
}

YAML::Node MapReader::child(const char* key) {
  known_.insert(key);
  return has(key) ? node_[key] : YAML::Node(YAML::NodeType::Undefined);
}

YAML::Node MapReader::child_map(const char* key) {
  YAML::Node value = child(key);
  if (value.IsDefined() && !value.IsMap()) refuse(key, "must be a mapping");
  return value;
}

YAML::Node MapReader::child_list(const char* key) {
  YAML::Node value = child(key);
  if (value.IsDefined() && !value.IsSequence()) {
    refuse(key, "must be a list");
    return YAML::Node(YAML::NodeType::Sequence);
  }
  return value.IsDefined() ? value : YAML::Node(YAML::NodeType::Sequence);
}

void MapReader::text(const char* key, std::string* out) {
  YAML::Node value = child(key);
  if (!value.IsDefined()) return;
  if (!value.IsScalar()) return refuse(key, "must be text");
  *out = value.Scalar();
}

void MapReader::number(const char* key, double* out, double low, double high) {
  YAML::Node value = child(key);
  if (!value.IsDefined()) return;
  double read = 0;
  if (!value.IsScalar() || !YAML::convert<double>::decode(value, read) || !std::isfinite(read)) {
    return refuse(key, "must be a number");
  }
  if (read < low || read > high) {
    char range[96];
    snprintf(range, sizeof range, "must be between %g and %g", low, high);
    return refuse(key, range);
  }
  *out = read;
}

void MapReader::whole(const char* key, uint64_t* out, uint64_t high) {
  double read = static_cast<double>(*out);
  if (!has(key)) {
    child(key);
    return;
  }
  number(key, &read, 0, static_cast<double>(high));
  if (failed()) return;
  if (read != std::floor(read)) return refuse(key, "must be a whole number");
  *out = static_cast<uint64_t>(read);
}

void MapReader::whole(const char* key, unsigned* out, uint64_t high) {
  uint64_t read = *out;
  whole(key, &read, high);
  *out = static_cast<unsigned>(read);
}

void MapReader::flag(const char* key, bool* out) {
  YAML::Node value = child(key);
  if (!value.IsDefined()) return;
  if (!value.IsScalar() || !YAML::convert<bool>::decode(value, *out)) refuse(key, "must be true or false");
}

void MapReader::seconds(const char* key, Millis* out) {
  constexpr double kMost = 1e9;
  if (!has(key)) {
    child(key);
    return;
  }
  double read = 0;
  number(key, &read, 0, kMost);
  *out = static_cast<Millis>(std::llround(read * 1000));
}

void MapReader::bytes(const char* key, std::optional<uint64_t>* out) {
  YAML::Node value = child(key);
  if (!value.IsDefined()) return;
  if (!value.IsScalar()) return refuse(key, "must be a size such as 512MiB or 40GiB");
  const std::string text = value.Scalar();
  if (text == "not available") {
    out->reset();
    return;
  }
  char* end = nullptr;
  const double count = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const double factor = unit.empty()    ? 1
                        : unit == "KiB" ? 1024.0
                        : unit == "MiB" ? 1048576.0
                        : unit == "GiB" ? 1073741824.0
                                        : 0;
  if (end == text.c_str() || factor == 0 || !(count >= 0) || count * factor > 1e15) {
    return refuse(key, "must be a size such as 512MiB or 40GiB, or 'not available'");
  }
  *out = static_cast<uint64_t>(count * factor);
}

void MapReader::require(const char* key) {
  if (!has(key)) failure_->report(node_, what_ + " needs '" + key + "'");
}

void MapReader::refuse(const char* key, const std::string& why) {
  failure_->report(has(key) ? node_[key] : node_, what_ + ": '" + key + "' " + why);
}

void MapReader::finish() {
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    if (!known_.count(key)) failure_->report(entry.first, what_ + ": unknown setting '" + key + "'");
  }
}

}  // namespace gpuledger::sim
