// SPDX-License-Identifier: Apache-2.0
#include "exposition_parser.h"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace gpuledger::expose {
namespace {

bool is_name(std::string_view name, bool colons) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '_' || (colons && c == ':');
  });
}

class Parser {
 public:
  Parser(const std::string& text, Format format) : text_(text), format_(format) {}

  Result<Exposition> run() {
    if (text_.empty() || text_.back() != '\n') return fail("no newline at the end");
    size_t start = 0;
    while (start < text_.size()) {
      const size_t end = text_.find('\n', start);
      line_ = std::string_view(text_).substr(start, end - start);
      start = end + 1;
      if (ended_) return fail("text after # EOF");
      if (const std::string problem = parse_line(); !problem.empty()) return fail(problem);
    }
    if (format_ == Format::kOpenMetrics && !ended_) return fail("no # EOF");
    if (const std::string problem = check_histograms(); !problem.empty()) return fail(problem);
    return std::move(result_);
  }

 private:
  Error fail(const std::string& why) const { return {Code::kMalformed, why + ": " + std::string(line_)}; }

  std::string parse_line() {
    for (const char c : line_) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return "control character";
    }
    if (line_ == "# EOF") {
      ended_ = format_ == Format::kOpenMetrics;
      return ended_ ? "" : "# EOF in text format";
    }
    if (line_.starts_with("# ")) return parse_header();
    return parse_sample();
  }

  std::string parse_header() {
    const size_t name_start = line_.find(' ', 2);
    const size_t name_end = name_start == line_.npos ? line_.npos : line_.find(' ', name_start + 1);
    if (name_end == line_.npos) return "header without text";
    const std::string_view kind = line_.substr(2, name_start - 2);
    const std::string name(line_.substr(name_start + 1, name_end - name_start - 1));
    const std::string rest(line_.substr(name_end + 1));
    if (!is_name(name, true)) return "not a name";
    if (name != current_) {
      if (result_.families.contains(name)) return "family in two pieces";
      if (!current_.empty() && samples_of_current_ == 0) return "family without samples before";
      current_ = name;
      samples_of_current_ = 0;
      seen_headers_.clear();
    }
    if (samples_of_current_ > 0) return "header after samples";
    if (!seen_headers_.insert(std::string(kind)).second) return "header twice";
    ParsedFamily& family = result_.families[name];
    if (kind == "HELP") {
      family.help = rest;
    } else if (kind == "TYPE") {
      const std::string_view any = format_ == Format::kOpenMetrics ? "unknown" : "untyped";
      if (rest != "counter" && rest != "gauge" && rest != "histogram" && rest != any) return "unknown type";
      family.type = rest;
    } else if (kind == "UNIT") {
      if (format_ != Format::kOpenMetrics || !name.ends_with("_" + rest)) return "wrong unit";
      family.unit = rest;
    } else {
      return "unknown header";
    }
    return "";
  }

  std::string parse_sample() {
    const size_t name_end = line_.find_first_of("{ ");
    if (name_end == line_.npos) return "no value";
    ParsedSample sample;
    sample.name = line_.substr(0, name_end);
    sample.family = current_;
    if (!is_name(sample.name, true)) return "not a name";
    const ParsedFamily& family = result_.families[current_];
    if (family.type.empty() || family.help.empty()) return "sample without HELP and TYPE";
    if (!belongs(sample.name, family.type)) return "sample of another family";
    std::string_view rest = line_.substr(name_end);
    if (rest[0] == '{') {
      if (const std::string problem = parse_labels(rest, sample.labels); !problem.empty()) return problem;
    }
    if (rest.size() < 2 || rest[0] != ' ') return "no blank before the value";
    sample.value = rest.substr(1);
    char* end = nullptr;
    const double number = std::strtod(sample.value.c_str(), &end);
    if (*end != '\0' || sample.value.find_first_of("nN xX") != std::string::npos) return "not a number";
    if (family.type != "gauge" && !(number >= 0)) return "a counter below zero";
    std::string key = sample.name;
    for (const auto& [name, value] : sample.labels) key += '\0' + name + '\0' + value;
    if (!series_.insert(key).second) return "series twice";
    ++samples_of_current_;
    result_.samples.push_back(std::move(sample));
    return "";
  }

  bool belongs(const std::string& name, const std::string& type) const {
    if (type == "histogram") {
      return name == current_ + "_bucket" || name == current_ + "_sum" || name == current_ + "_count";
    }
    const bool counter = type == "counter";
    // DCGM's names are older than the rules for names.
    const bool free = current_.starts_with("dcgm_") || current_.starts_with("DCGM_");
    if (free && name == current_) return !(counter && format_ == Format::kOpenMetrics);
    if (format_ == Format::kOpenMetrics) {
      if (current_.ends_with("_total")) return false;
      return name == current_ + (counter ? "_total" : "");
    }
    return name == current_ && name.ends_with("_total") == counter;
  }

  static std::string parse_labels(std::string_view& rest, Labels& labels) {
    do {
      rest.remove_prefix(1);
      const size_t equals = rest.find('=');
      if (equals == rest.npos) return "label without value";
      const std::string name(rest.substr(0, equals));
      if (!is_name(name, false)) return "not a label name";
      rest.remove_prefix(equals + 1);
      if (rest.empty() || rest[0] != '"') return "label value without quotes";
      rest.remove_prefix(1);
      std::string value;
      while (!rest.empty() && rest[0] != '"') {
        if (rest[0] == '\\') {
          rest.remove_prefix(1);
          if (rest.empty() || std::string_view("n\\\"").find(rest[0]) == std::string_view::npos) return "bad escape";
          value += rest[0] == 'n' ? '\n' : rest[0];
        } else {
          value += rest[0];
        }
        rest.remove_prefix(1);
      }
      if (rest.empty()) return "label value without end";
      rest.remove_prefix(1);
      if (value.empty()) return "empty label";
      if (!labels.emplace(name, value).second) return "label twice";
    } while (rest.starts_with(','));
    if (!rest.starts_with('}')) return "labels without end";
    rest.remove_prefix(1);
    return "";
  }

  std::string check_histograms() const {
    std::map<std::string, double> last_bucket;
    std::string infinite;
    for (const ParsedSample& sample : result_.samples) {
      if (result_.families.at(sample.family).type != "histogram") continue;
      Labels others = sample.labels;
      others.erase("le");
      std::string key = sample.family;
      for (const auto& [name, value] : others) key += '\0' + name + '\0' + value;
      const double number = std::strtod(sample.value.c_str(), nullptr);
      if (sample.name.ends_with("_bucket")) {
        if (!sample.labels.contains("le")) return "bucket without le in " + sample.family;
        const std::string& bound = sample.labels.at("le");
        if (bound != "+Inf" && bound.find_first_of(".e") == std::string::npos) return "le is not canonical: " + bound;
        if (number < last_bucket[key]) return "buckets are not cumulative in " + sample.family;
        last_bucket[key] = number;
        infinite = bound;
      } else if (infinite != "+Inf") {
        return "last bucket is not +Inf in " + sample.family;
      } else if (sample.name.ends_with("_count") && number != last_bucket[key]) {
        return "_count differs from +Inf in " + sample.family;
      }
    }
    return "";
  }

  const std::string& text_;
  Format format_;
  std::string_view line_;
  Exposition result_;
  std::string current_;
  size_t samples_of_current_ = 0;
  std::set<std::string> seen_headers_;
  std::set<std::string> series_;
  bool ended_ = false;
};

}  // namespace

Result<Exposition> parse_exposition(const std::string& text, Format format) {
  return Parser(text, format).run();
}

std::vector<const ParsedSample*> Exposition::find(std::string_view name, const Labels& labels) const& {
  std::vector<const ParsedSample*> found;
  for (const ParsedSample& sample : samples) {
    if (sample.name != name) continue;
    const bool fits = std::all_of(labels.begin(), labels.end(), [&](const auto& wanted) {
      const auto label = sample.labels.find(wanted.first);
      return label != sample.labels.end() && label->second == wanted.second;
    });
    if (fits) found.push_back(&sample);
  }
  return found;
}

bool Exposition::has(std::string_view name) const {
  return !find(name).empty();
}

std::optional<std::string> Exposition::value(std::string_view name, const Labels& labels) const {
  const auto found = find(name, labels);
  if (found.size() != 1) return std::nullopt;
  return found[0]->value;
}

int64_t Exposition::micro_sum(std::string_view name, const Labels& labels) const {
  int64_t sum = 0;
  for (const ParsedSample* sample : find(name, labels)) sum += parse_micro(sample->value);
  return sum;
}

int64_t parse_micro(const std::string& decimal) {
  const size_t point = decimal.find('.');
  std::string digits = decimal.substr(0, point);
  std::string places = point == std::string::npos ? "" : decimal.substr(point + 1);
  places.resize(6, '0');
  return std::strtoll((digits + places).c_str(), nullptr, 10);
}

}  // namespace gpuledger::expose
