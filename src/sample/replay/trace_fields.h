// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sample/replay/trace.h"

namespace gpuledger::replay {

using Json = nlohmann::json;
inline constexpr double kLongestSeconds = 1e8;  // three years, no overflow in nanoseconds
inline constexpr uint64_t kMostPid = 1u << 22;  // the kernel's limit
inline constexpr double kWidestBinSeconds = 10;
inline constexpr uint64_t kMost32 = UINT32_MAX;
inline constexpr uint64_t kMost64 = UINT64_MAX;

// A field's name in the lines of k "process".
inline std::string name_of(const KinField& field) {
  for (const OwnerField& owned : kOwnerFields) {
    if (owned.value == field.value) return std::string(owned.name);
  }
  return {};
}

// One line's fields. The first invalid one is remembered and the whole line is refused, so that callers need no checks.
class Line {
 public:
  explicit Line(std::string_view text) : json_(Json::parse(text, nullptr, false)), fields_(&json_) {
    if (!json_.is_object()) wrong("it is not a JSON object");
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  const std::string& problem() const { return problem_; }

  std::string text(const char* key) {
    const Json* value = find(key);
    if (value != nullptr && value->is_string()) return value->get<std::string>();
    missing_or(key, value, "is not a text");
    return {};
  }

  std::string bounded_text(const std::string& key, size_t most_bytes) {
    std::string value = text(key.c_str());
    if (value.size() <= most_bytes) return value;
    wrong("'" + key + "' is longer than " + std::to_string(most_bytes) + " bytes");
    return {};
  }

  // Empty: not there.
  std::string optional_text(const std::string& key, size_t most_bytes) {
    return find(key.c_str()) == nullptr ? std::string() : bounded_text(key, most_bytes);
  }

  // From here on the fields of the object in this field.
  void enter(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_object()) {
      missing_or(key, value, "is not an object");
    } else {
      fields_ = value;
    }
  }

  template <typename T = uint64_t>
  T whole(const char* key, uint64_t most) {
    const auto value = optional_whole<T>(key, most);
    if (!value) missing_or(key, find(key), "is not a number");
    return value.value_or(T{});
  }

  template <typename T = uint64_t>
  std::optional<T> optional_whole(const char* key, uint64_t most) {
    const Json* value = find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return static_cast<T>(whole_of(*value, key, most));
  }

  Nanoseconds seconds(const char* key) {
    const Json* value = find(key);
    if (value == nullptr) {
      missing_or(key, value, "");
      return Nanoseconds(0);
    }
    return seconds_of(*value, key);
  }

  std::optional<Ratio> percent(const char* key) {
    const Json* value = find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (std::isfinite(number) && number >= 0) return Ratio::of_percent(number);
    wrong(std::string("'") + key + "' is not a percentage");
    return std::nullopt;
  }

  std::vector<Trace::Holder> holders() {
    std::vector<Trace::Holder> holders;
    for (const Json* pair : pairs("p")) {
      Trace::Holder holder{static_cast<Pid>(whole_of((*pair)[0], "p", kMostPid)), std::nullopt};
      if (!(*pair)[1].is_null()) holder.memory = Bytes{whole_of((*pair)[1], "p", kMost64)};
      holders.push_back(holder);
    }
    return holders;
  }

  std::vector<Trace::Watts> watts() {
    std::vector<Trace::Watts> watts;
    for (const Json* pair : pairs("mw")) {
      watts.push_back({seconds_of((*pair)[0], "mw"), static_cast<uint32_t>(whole_of((*pair)[1], "mw", kMost32))});
    }
    return watts;
  }

  // "p" and "c" hold milliseconds per process and bin, "known" a 1 for each known bin. Without "known" an empty bin is
  // ambiguous and taken as unknown.
  std::vector<Trace::Resident> residency(Nanoseconds t) {
    const Json* width_given = find("w");
    const double seconds = width_given != nullptr && width_given->is_number() ? width_given->get<double>() : 0;
    if (!(seconds > 0 && seconds <= kWidestBinSeconds)) missing_or("w", width_given, "is not a width in seconds");
    const Nanoseconds width(std::llround(seconds * 1e9));
    const auto resident = milliseconds_by_pid("p", width);
    const auto contended = find("c") == nullptr ? decltype(resident)() : milliseconds_by_pid("c", width);
    const std::vector<bool> known = known_bins();
    const size_t count = resident.empty() ? known.size() : resident.begin()->second.size();
    if (!known.empty() && known.size() != count) wrong("'known' is not as long as the lists in 'p'");
    if (!problem_.empty()) return {};
    std::vector<Trace::Resident> bins;
    for (size_t i = 0; i < count; ++i) {
      ResidencyBin bin{t - static_cast<int64_t>(count - 1 - i) * width, width, {}};
      for (const auto& [pid, times] : resident) {
        if (times[i] == Nanoseconds(0)) continue;
        const auto found = contended.find(pid);
        std::optional<Nanoseconds> part;
        if (find("c") != nullptr) part = found == contended.end() ? Nanoseconds(0) : found->second[i];
        bin.residents.push_back({pid, times[i], part});
      }
      if (known.empty() ? !bin.residents.empty() : known[i]) bins.push_back({bin.end, std::move(bin)});
    }
    return bins;
  }

 private:
  // Every list is as long as the first one of the line.
  std::map<Pid, std::vector<Nanoseconds>> milliseconds_by_pid(const char* key, Nanoseconds width) {
    const double most = static_cast<double>(width.count()) / 1e6 * 1.001;  // they are rounded
    std::map<Pid, std::vector<Nanoseconds>> lists;
    for (const Json* pair : pairs(key)) {
      std::vector<Nanoseconds>& times = lists[static_cast<Pid>(whole_of((*pair)[0], key, kMostPid))];
      if (!(*pair)[1].is_array() || !times.empty()) wrong(std::string("'") + key + "' is not a list of lists by pid");
      for (const Json& value : (*pair)[1]) {
        const double number = value.is_number() ? value.get<double>() : -1;
        if (!(number >= 0 && number <= most)) wrong(std::string("'") + key + "' has a time that is not within 'w'");
        times.push_back(std::min(width, Nanoseconds(std::llround(std::clamp(number, 0.0, most) * 1e6))));
      }
      bins_ = bins_ == 0 ? times.size() : bins_;
      if (times.size() != bins_ || bins_ == 0) wrong(std::string("'") + key + "' has lists of different lengths");
    }
    return lists;
  }
  std::vector<bool> known_bins() {
    std::vector<bool> known;
    const Json* list = find("known");
    if (list == nullptr) return known;
    if (!list->is_array()) wrong("'known' is not a list");
    for (const Json& value : *list) known.push_back(whole_of(value, "known", 1) == 1);
    return known;
  }

  const Json* find(const char* key) const {
    if (!fields_->is_object()) return nullptr;
    const auto found = fields_->find(key);
    return found == fields_->end() ? nullptr : &*found;
  }
  void wrong(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  void missing_or(const char* key, const Json* value, const char* otherwise) {
    wrong(std::string("'") + key + "' " + (value == nullptr ? "not found" : otherwise));
  }
  uint64_t whole_of(const Json& value, const char* key, uint64_t most) {
    if (value.is_number_unsigned() && value.get<uint64_t>() <= most) return value.get<uint64_t>();
    wrong(std::string("'") + key + "' is not a whole number between 0 and " + std::to_string(most));
    return 0;
  }
  Nanoseconds seconds_of(const Json& value, const char* key) {
    const double number = value.is_number() ? value.get<double>() : kLongestSeconds * 2;
    // Slightly negative is valid: samples that the driver had when the recording began.
    if (std::isfinite(number) && std::abs(number) <= kLongestSeconds) return Nanoseconds(std::llround(number * 1e9));
    wrong(std::string("'") + key + "' is not a time in seconds");
    return Nanoseconds(0);
  }
  std::vector<const Json*> pairs(const char* key) {
    std::vector<const Json*> pairs;
    const Json* list = find(key);
    if (list == nullptr || !list->is_array()) {
      missing_or(key, list, "is not a list");
      return pairs;
    }
    for (const Json& entry : *list) {
      if (entry.is_array() && entry.size() == 2) {
        pairs.push_back(&entry);
      } else {
        wrong(std::string("'") + key + "' is not a list of pairs");
      }
    }
    return pairs;
  }

  const Json json_;
  const Json* fields_;  // in json_
  std::string problem_;
  size_t bins_ = 0;  // of a residency line; 0: unknown yet
};

}  // namespace gpuledger::replay
