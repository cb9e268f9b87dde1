// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "expose/json_text.h"
#include "expose/row.h"

namespace gpuledger::expose {

// Through whole microseconds: a double has them exactly since 1970, but not nanoseconds.
inline double seconds_of(Nanoseconds time) {
  const int64_t microseconds = time.count() / 1000;
  return static_cast<double>(microseconds) / 1e6;
}

// In JSON's form. Types without one are left out: no row with a field has them.
template <typename T>
void write_field(JsonText& json, std::string_view name, const T& value) {
  if constexpr (std::is_same_v<T, Nanoseconds>) {
    json.field(name, seconds_of(value));
  } else if constexpr (std::is_same_v<T, Power>) {
    json.field(name, value.watts());
  } else if constexpr (std::is_same_v<T, Bytes>) {
    json.field(name, value.count);
  } else if constexpr (std::is_same_v<T, Ratio>) {
    json.field(name, value.value);
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    json.field_if_any(name, value);
  } else if constexpr (requires { json.value(value); }) {
    json.field(name, value);
  }
}

// A row's sample becomes the field of that name.
class JsonFieldSink final : public FamilySink {
 public:
  JsonFieldSink(JsonText& json, std::string_view name) : json_(json), name_(name) {}
  void begin_family(FamilyHead) override {}

 private:
  void write(std::string_view, const Value& value, std::string_view) override {
    std::visit([&](const auto& content) { write_field(json_, name_, content); }, value);
  }

  JsonText& json_;
  std::string_view name_;
};

// The fields of one kind of object, in alphabetical order, so that documents are easy to compare. Fields of metrics
// are from the metrics' rows.
template <typename Entry>
class JsonFields {
 public:
  // A later field replaces an earlier one of the same name.
  // get takes the entry and returns a value, an optional or a text (empty: no field); or it takes JsonText and the
  // entry and writes an object, a list, or nothing.
  template <typename Get>
  JsonFields& add(std::string_view name, Get get) {
    std::erase_if(fields_, [&](const Field& field) { return field.name == name; });
    fields_.push_back({name, [name, get](const View&, JsonText& json, const Entry& entry) {
                         if constexpr (std::is_invocable_v<Get, JsonText&, const Entry&>) {
                           get(json, entry);
                         } else {
                           put(json, name, get(entry));
                         }
                       }});
    return *this;
  }
  JsonFields& add(std::span<const Row<Entry>> rows) {
    for (const Row<Entry>& row : rows) {
      if (row.field.empty()) continue;
      fields_.push_back({row.field, [&row](const View& view, JsonText& json, const Entry& entry) {
                           JsonFieldSink sink(json, row.field);
                           Samples samples(view, sink, {});
                           row.read(entry, samples);
                         }});
    }
    return *this;
  }
  JsonFields sorted() {
    std::sort(fields_.begin(), fields_.end(), [](const Field& a, const Field& b) { return a.name < b.name; });
    return std::move(*this);
  }

  void write(const View& view, JsonText& json, const Entry& entry) const {
    json.open('{');
    for (const Field& field : fields_) field.write(view, json, entry);
    json.close('}');
  }

 private:
  struct Field {
    std::string_view name;
    std::function<void(const View&, JsonText&, const Entry&)> write;
  };

  template <typename T>
  static void put(JsonText& json, std::string_view name, const T& value) {
    write_field(json, name, value);
  }
  template <typename T>
  static void put(JsonText& json, std::string_view name, const std::optional<T>& value) {
    if (value) write_field(json, name, *value);
  }

  std::vector<Field> fields_;
};

}  // namespace gpuledger::expose
