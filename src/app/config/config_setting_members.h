// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "app/config/config_settings.h"
#include "app/config/config_values.h"
#include "base/duration.h"
#include "base/listen_address.h"
#include "base/quote.h"

// How the rows of the table of settings fill a member of Config: as text, parsed, as a duration, a choice, a list.
namespace gpuledger::app {

using Values = std::vector<std::string>;

template <auto kMember>
constexpr SettingMember kept_in(decltype(SettingMember::apply) apply) {
  return {apply, [](const Config& a, const Config& b) { return a.*kMember == b.*kMember; },
          [](Config& to, const Config& from) { to.*kMember = from.*kMember; }};
}

template <auto kMember>
inline constexpr SettingMember kText = kept_in<kMember>([](const Values& values, Config& config) {
  config.*kMember = values.front();
  return ok_status();
});

template <auto kMember>
inline constexpr SettingMember kPath = kept_in<kMember>([](const Values& values, Config& config) -> Status {
  if (values.front().empty()) return Error{Code::kMalformed, "needs a path"};
  return kText<kMember>.apply(values, config);
});

template <auto kMember, auto kParse>
inline constexpr SettingMember kParsed = kept_in<kMember>([](const Values& values, Config& config) -> Status {
  GL_TRY(parsed, kParse(values.front()));
  config.*kMember = std::move(parsed);
  return ok_status();
});

template <auto kMember, int64_t kShortestMs, const Nanoseconds& kLongest>
inline constexpr SettingMember kDuration = kept_in<kMember>([](const Values& values, Config& config) -> Status {
  GL_TRY(parsed, parse_duration(values.front()));
  if (parsed < std::chrono::milliseconds(kShortestMs) || parsed > kLongest) {
    return Error{Code::kMalformed, in_quotes(values.front()) + " is not between " +
                                       write_duration(std::chrono::milliseconds(kShortestMs)) + " and " +
                                       write_duration(kLongest)};
  }
  config.*kMember = parsed;
  return ok_status();
});

constexpr SettingMember with_words(std::span<const std::string_view> words, SettingMember member) {
  member.words = words;
  return member;
}

// The words are in the order of the enum, or the setting is stored as text.
template <auto kMember, const auto& kWords>
inline constexpr SettingMember kChoice =
    with_words(kWords, kept_in<kMember>([](const Values& values, Config& config) -> Status {
                 GL_TRY(place, parse_choice(values.front(), kWords));
                 using Member = std::remove_reference_t<decltype(config.*kMember)>;
                 if constexpr (std::is_enum_v<Member>) {
                   config.*kMember = static_cast<Member>(place);
                 } else if constexpr (requires {
                                        typename Member::value_type;
                                        requires std::is_enum_v<typename Member::value_type>;
                                      }) {
                   config.*kMember = static_cast<typename Member::value_type>(place);
                 } else {
                   config.*kMember = values.front();
                 }
                 return ok_status();
               }));

template <auto kMember>
Status set_listen_addresses(const Values& values, Config& config) {
  for (const std::string& value : values) GL_TRY_STATUS(parse_listen_address(value));
  if (values.empty()) return Error{Code::kMalformed, "needs at least one address (write :9400)"};
  config.*kMember = values;
  return ok_status();
}

template <auto kMember>
inline constexpr SettingMember kNames = kept_in<kMember>([](const Values& values, Config& config) -> Status {
  for (const std::string& value : values) {
    if (value.empty()) return Error{Code::kMalformed, "has an empty name in its list"};
  }
  config.*kMember = values;
  return ok_status();
});

// NAME=VALUE each, checked by kParse.
template <auto kMember, auto kParse>
inline constexpr SettingMember kPairs = kept_in<kMember>([](const Values& values, Config& config) -> Status {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& value : values) {
    GL_TRY(pair, kParse(value));
    const auto same = [&](const auto& other) { return other.first == pair.first; };
    if (std::any_of(pairs.begin(), pairs.end(), same))
      return Error{Code::kMalformed, in_quotes(pair.first) + " is given twice"};
    pairs.push_back(std::move(pair));
  }
  config.*kMember = std::move(pairs);
  return ok_status();
});

}  // namespace gpuledger::app
