// SPDX-License-Identifier: Apache-2.0
#include "http/negotiate.h"

#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace gpuledger::http {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(trim(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// One element of an Accept or Accept-Encoding list.
struct Range {
  std::string name;
  std::string version;
  double q = 1;
};

// An unreadable weight counts as 1, as in Go's clients and servers.
double parse_weight(std::string_view text) {
  double q = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), q);
  if (error != std::errc() || end != text.data() + text.size() || !(q >= 0 && q <= 1)) return 1;
  return q;
}

std::vector<Range> parse_ranges(std::string_view header) {
  std::vector<Range> ranges;
  for (const std::string_view element : split(header, ',')) {
    const auto parts = split(element, ';');
    if (parts[0].empty()) continue;
    Range range{lower(parts[0]), "", 1};
    for (size_t i = 1; i < parts.size(); ++i) {
      const auto equals = parts[i].find('=');
      if (equals == std::string_view::npos) continue;
      const std::string key = lower(trim(parts[i].substr(0, equals)));
      std::string_view value = trim(parts[i].substr(equals + 1));
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
      if (key == "q") range.q = parse_weight(value);
      if (key == "version") range.version = value;
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

// How specifically a range matches the format: 0 no match, 3 its type. A version we do not write is none.
int specificity(const Range& range, Format format) {
  const bool text = format == Format::kText;
  if (range.name == "*/*") return 1;
  if (range.name == (text ? "text/*" : "application/*")) return 2;
  if (range.name != (text ? "text/plain" : "application/openmetrics-text")) return 0;
  if (range.version.empty()) return 3;
  if (text) return range.version == "0.0.4" ? 3 : 0;
  return range.version == "1.0.0" || range.version == "0.0.1" ? 3 : 0;
}

struct Match {
  int specificity = 0;
  double q = 0;
  size_t position = 0;
};

// The most specific range decides; among equals the one with the highest weight.
Match best_match(const std::vector<Range>& ranges, Format format) {
  Match best;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Match match{specificity(ranges[i], format), ranges[i].q, i};
    if (match.specificity == 0) continue;
    if (match.specificity > best.specificity || (match.specificity == best.specificity && match.q > best.q))
      best = match;
  }
  return best;
}

}  // namespace

Format negotiate_format(std::string_view accept) {
  const auto ranges = parse_ranges(accept);
  if (ranges.empty()) return Format::kText;
  const Match text = best_match(ranges, Format::kText);
  const Match open = best_match(ranges, Format::kOpenMetrics);
  if (text.q <= 0 && open.q <= 0) return Format::kText;
  if (text.q != open.q) return open.q > text.q ? Format::kOpenMetrics : Format::kText;
  if (text.specificity != open.specificity)
    return open.specificity > text.specificity ? Format::kOpenMetrics : Format::kText;
  return open.position < text.position ? Format::kOpenMetrics : Format::kText;
}

bool negotiate_gzip(std::string_view accept_encoding) {
  std::optional<double> gzip, identity, any;
  for (const Range& range : parse_ranges(accept_encoding)) {
    if (range.name == "gzip" || range.name == "x-gzip") gzip = range.q;
    if (range.name == "identity") identity = range.q;
    if (range.name == "*") any = range.q;
  }
  const double weight = gzip.value_or(any.value_or(0));
  return weight > 0 && weight >= identity.value_or(0);
}

}  // namespace gpuledger::http
