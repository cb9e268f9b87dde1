// SPDX-License-Identifier: Apache-2.0
#include "app/config/config_values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>

#include "base/duration.h"
#include "base/quote.h"
#include "base/text.h"
#include "base/utf8.h"

namespace gpuledger::app {
namespace {

std::optional<uint32_t> number_up_to(std::string_view text, uint32_t largest) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!is_number(text) || error != std::errc() || end != text.data() + text.size() || number > largest) return {};
  return number;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    rows[i][0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows.back().back();
}

}  // namespace

Result<bool> parse_bool(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view yes : {"true", "t", "1", "yes", "on"}) {
    if (lower == yes) return true;
  }
  for (const std::string_view no : {"false", "f", "0", "no", "off"}) {
    if (lower == no) return false;
  }
  return malformed(text, "is neither true nor false");
}

Result<uint64_t> parse_count(std::string_view text) {
  constexpr uint32_t kMost = 1'000'000'000;
  const auto number = number_up_to(text, kMost);
  if (!number) return malformed(text, "is no whole number up to " + std::to_string(kMost));
  return uint64_t{*number};
}

Result<uint64_t> parse_size(std::string_view text) {
  constexpr std::pair<std::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  for (const auto& [unit, bits] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = number_up_to(text.substr(0, text.size() - unit.size()), 1u << 30);
    const uint64_t bytes = number ? uint64_t{*number} << bits : 0;
    if (bytes >= uint64_t{1} << 20 && bytes <= uint64_t{1} << 40) return bytes;
  }
  return malformed(text, "is not a size between 1MiB and 1TiB (write 256MiB or 2GiB)");
}

Result<std::pair<std::string, std::string>> parse_label(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const bool starts_well = !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0;
  if (equals == text.npos || !starts_well || !std::all_of(name.begin(), name.end(), allowed) || name.starts_with("__"))
    return malformed(text, "is not NAME=VALUE with the name of a label (write cluster=east)");
  const std::string_view value = text.substr(equals + 1);
  if (value.empty()) return malformed(text, "has no value");
  for (std::string_view rest = value; !rest.empty();) {
    const Utf8Character character = decode_utf8(rest);
    if (!character.valid || character.code < 0x20) return malformed(text, "has a value that is not plain UTF-8");
    rest.remove_prefix(character.length);
  }
  return std::pair(std::string(name), std::string(value));
}

Result<std::pair<std::string, std::string>> parse_header(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const auto allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; };
  if (equals == text.npos || name.empty() || !std::all_of(name.begin(), name.end(), allowed))
    // It is not shown: it may be a secret, or the part of one that follows a comma.
    return Error{
        Code::kMalformed,
        "has a part that is not NAME=VALUE with the name of a header (write X-Scope-OrgID=TENANT; a value with "
        "a comma needs a list in the config file)"};
  const std::string_view value = text.substr(equals + 1);
  if (!std::all_of(value.begin(), value.end(), [](char c) { return c >= 0x20 && c < 0x7f; }))
    return malformed(name, "has a value that is not plain ASCII");
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::string_view kOwn[] = {"authorization", "connection", "content-encoding",  "content-length",
                                       "content-type",  "host",       "transfer-encoding", "user-agent"};
  if (std::find(std::begin(kOwn), std::end(kOwn), lower) != std::end(kOwn))
    return malformed(name, "is a header that the program sets itself");
  return std::pair(std::string(name), std::string(value));
}

Result<size_t> parse_choice(std::string_view text, std::span<const std::string_view> allowed) {
  const auto found = std::find(allowed.begin(), allowed.end(), text);
  if (found == allowed.end()) return malformed(text, "is not one of " + join_choices(allowed));
  return static_cast<size_t>(found - allowed.begin());
}

Result<std::optional<Power>> parse_idle_power(std::string_view text) {
  if (text == "learned") return std::optional<Power>();
  double watts = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), watts);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !std::isfinite(watts) || watts < 0 || watts > 10'000) {
    return malformed(text, "is not a power in watts (0 to 10000; 0 or learned: found out while running)");
  }
  const Power power = Power::watts(watts);
  if (power == Power()) return std::optional<Power>();
  return std::optional<Power>(power);
}

Result<std::string> parse_port(std::string_view text) {
  const std::optional<uint32_t> port = number_up_to(text, 65535);
  if (!port || *port == 0) return malformed(text, "is not a port (1 to 65535)");
  return ":" + std::to_string(*port);
}

Result<std::string> parse_gpu_device(std::string_view text) {
  const bool uuid = (text.starts_with("GPU-") || text.starts_with("MIG-")) && text.size() > 4 &&
                    std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '-'; });
  if (!uuid && !number_up_to(text, 9999)) return malformed(text, "is neither a GPU's index (0) nor its UUID (GPU-...)");
  return std::string(text);
}

Result<std::string> parse_metrics_path(std::string_view text) {
  if (!text.starts_with('/')) return malformed(text, "does not start with /");
  for (const unsigned char c : text) {
    if (c <= ' ' || c >= 0x7f || c == '?' || c == '#' || c == '%' || c == '"') {
      return malformed(text, "is not a plain path (write /metrics)");
    }
  }
  constexpr std::array<std::string_view, 10> kTaken = {
      "/",       "/page.css", "/page.js", "/gpu/metrics", "/api/v1/snapshot", "/api/v1/history",
      "/health", "/healthz",  "/-/ready", "/readyz"};
  if (std::find(kTaken.begin(), kTaken.end(), text) != kTaken.end()) return malformed(text, "is another page's path");
  return std::string(text);
}

Result<std::string> parse_metric_prefix(std::string_view text) {
  const auto allowed = [](unsigned char c) { return c == '_' || c == ':' || (c < 0x80 && std::isalnum(c) != 0); };
  const bool starts_well = !text.empty() && !(text.front() >= '0' && text.front() <= '9');
  if (!starts_well || !std::all_of(text.begin(), text.end(), allowed)) {
    return malformed(text, "cannot begin a metric's name (letters, digits, _ and :, no digit first)");
  }
  return std::string(text);
}

Result<mode_t> parse_file_mode(std::string_view text) {
  unsigned mode = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, mode, 8);
  const bool octal = failed == std::errc() && stop == end && text.size() >= 3 && text.size() <= 4;
  if (!octal || (mode & 0600) != 0600 || (mode & ~0666U) != 0) {
    return malformed(text, "is not a file's rights in octal between 0600 and 0666");
  }
  return static_cast<mode_t>(mode);
}

Result<double> parse_percent(std::string_view text) {
  const std::string_view number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  double percent = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, failed] = std::from_chars(number.data(), end, percent);
  if (failed == std::errc() && stop == end && percent > 0 && percent <= 100) return percent / 100;
  return malformed(text, "is not a percentage (write 0.5%; more than 0, 100% at most)");
}

std::vector<std::string> split_list(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(separator), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

std::string join_choices(std::span<const std::string_view> words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > 64) return {};
  std::string_view best;
  size_t best_distance = word.size();
  for (const std::string_view candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    const size_t near = std::max(word.size(), candidate.size()) / 3;
    if (distance <= near && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace gpuledger::app
