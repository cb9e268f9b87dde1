// SPDX-License-Identifier: Apache-2.0
#include "expose/upstream_parse.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace gpuledger::expose {
namespace {

using Kind = UpstreamLine::Kind;

Error refuse(std::string why) {
  return {Code::kMalformed, std::move(why)};
}

std::string unescape_help(std::string_view text) {
  std::string help;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool pair = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '\\' || text[i + 1] == 'n');
    if (pair) ++i;
    help += pair && text[i] == 'n' ? '\n' : text[i];
  }
  return help;
}

// Unique per series: no value contains the zero byte that separates labels.
std::string key_of(const UpstreamLine& line) {
  std::string key(line.name);
  for (const UpstreamLabel& label : line.labels) key.append(1, '\0').append(label.name).append("=").append(label.value);
  return key;
}

class Gathering {
 public:
  // False: there is no room for more.
  bool add(UpstreamLine line) {
    switch (line.kind) {
      case Kind::kNothing: break;
      case Kind::kFaulty: count(line.fault); break;
      case Kind::kHelp: add_help(line); break;
      case Kind::kType: add_type(line); break;
      case Kind::kSample: return add_sample(std::move(line));
    }
    return true;
  }

  UpstreamText take() {
    std::erase_if(text_.families, [](const UpstreamFamily& family) { return family.series.empty(); });
    for (UpstreamFamily& family : text_.families) {
      if (family.type != "counter" && family.type != "gauge") family.type = "untyped";
    }
    return std::move(text_);
  }

  size_t series() const { return known_.size(); }

 private:
  void count(LineFault fault) { ++text_.faults[static_cast<size_t>(fault)]; }

  // Null: there is no room for more.
  UpstreamFamily* family(std::string_view name) {
    const auto place = places_.find(std::string(name));
    if (place != places_.end()) return &text_.families[place->second];
    // Headers without samples take room too.
    if (text_.families.size() == kMostUpstreamSeries) return nullptr;
    places_.emplace(name, text_.families.size());
    text_.families.push_back({std::string(name), "", "", {}});
    return &text_.families.back();
  }

  void add_help(const UpstreamLine& line) {
    UpstreamFamily* const owner = family(line.name);
    if (owner != nullptr && owner->help.empty()) owner->help = unescape_help(line.text);
  }

  void add_type(const UpstreamLine& line) {
    UpstreamFamily* const owner = family(line.name);
    if (owner == nullptr) return;
    if (owner->type.empty()) owner->type = line.text;
    if (owner->type != line.text) count(LineFault::kType);
  }

  bool add_sample(UpstreamLine line) {
    if (!known_.insert(key_of(line)).second) {
      count(LineFault::kDuplicate);
      return true;
    }
    UpstreamFamily* const owner = family(line.name);
    labels_ += line.labels.size();
    if (owner == nullptr || known_.size() > kMostUpstreamSeries || labels_ > kMostUpstreamLabels) return false;
    line.labels.shrink_to_fit();
    owner->series.push_back({std::move(line.labels), std::string(line.text)});
    return true;
  }

  UpstreamText text_;
  std::unordered_map<std::string, size_t> places_;
  std::unordered_set<std::string> known_;
  size_t labels_ = 0;
};

}  // namespace

Result<UpstreamText> parse_upstream(std::string_view text) {
  if (text.size() > kLargestUpstream) return refuse("more than " + std::to_string(kLargestUpstream >> 20) + " MiB");
  if (text.empty()) return refuse("nothing in it");
  if (text.find('\0') != std::string_view::npos) return refuse("not a text");
  if (!text.ends_with('\n')) return refuse("ends within a line: not all of it is there");
  Gathering gathering;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (!gathering.add(parse_upstream_line(text.substr(0, end))))
      return refuse("more than " + std::to_string(kMostUpstreamSeries) + " series or " +
                    std::to_string(kMostUpstreamLabels) + " labels");
    text.remove_prefix(end + 1);
  }
  if (gathering.series() == 0) return refuse("no metrics in it");
  return gathering.take();
}

}  // namespace gpuledger::expose
