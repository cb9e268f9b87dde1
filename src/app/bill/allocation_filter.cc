// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocation_filter.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/quote.h"

namespace gpuledger::app {
namespace {

using Kind = AllocationFilter::Kind;

constexpr int kDeepest = 20;
// Each is compared with every owner of every set.
constexpr size_t kMostValues = 100;

constexpr std::array<std::pair<std::string_view, Kind>, 4> kComparisons = {
    {{"<~:", Kind::kBegins}, {"~>:", Kind::kEnds}, {"~:", Kind::kContains}, {":", Kind::kIs}}};

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Result<AllocationFilter> whole() {
    GL_TRY(filter, group(0));
    skip_blanks();
    if (!rest_.empty()) return cannot_read();
    return filter;
  }

 private:
  // One operator per pair of parentheses, as the language has it.
  Result<AllocationFilter> group(int depth) {
    if (depth > kDeepest) return Error{Code::kMalformed, "filter: has too many parentheses within each other"};
    GL_TRY(first, element(depth));
    AllocationFilter all;
    const std::string_view sign = take("+") ? "+" : take("|") ? "|" : "";
    if (sign.empty()) return first;
    if (sign == "|") all.kind = Kind::kAny;
    all.parts.push_back(std::move(first));
    do {
      GL_TRY(next, element(depth));
      all.parts.push_back(std::move(next));
    } while (take(sign));
    return all;
  }

  Result<AllocationFilter> element(int depth) {
    if (!take("(")) return comparison();
    GL_TRY(inner, group(depth + 1));
    if (!take(")")) return cannot_read();
    return inner;
  }

  Result<AllocationFilter> comparison() {
    AllocationFilter one;
    GL_TRY(property, take_property());
    one.property = std::move(property);
    one.negated = take("!");
    const auto sign =
        std::find_if(kComparisons.begin(), kComparisons.end(), [&](const auto& c) { return take(c.first); });
    if (sign == kComparisons.end()) return cannot_read();
    one.kind = sign->second;
    do {
      GL_TRY(value, take_value());
      if (value.empty() && one.kind != Kind::kIs)
        return Error{Code::kMalformed, R"(filter: "__unallocated__" or "" needs : or !: before it)"};
      if (++values_ > kMostValues)
        return Error{Code::kMalformed, "filter: has more than " + std::to_string(kMostValues) + " values"};
      one.values.push_back(std::move(value));
    } while (take(","));
    return one;
  }

  Result<std::string> take_property() {
    skip_blanks();
    const std::string_view name = take_while([](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (name.empty()) return cannot_read();
    if (name == "label" && take("[")) {
      const std::string_view label = take_while([](unsigned char c) { return c != ']'; });
      if (!is_label_name(label) || !take("]")) return cannot_read();
      return "label:" + std::string(label);
    }
    if (std::find(kAllocationProperties.begin(), kAllocationProperties.end(), name) != kAllocationProperties.end())
      return std::string(name);
    return Error{Code::kMalformed, "filter: " + in_quotes(name) +
                                       " is not known here (cluster, node, namespace, pod, label[NAME], user, "
                                       "slurm_account)"};
  }

  // In quotes. There is no way to write a quote in it, and no name has one.
  Result<std::string> take_value() {
    if (!take("\"")) return cannot_read();
    const std::string_view value = take_while([](unsigned char c) { return c != '"'; });
    if (!take("\"")) return cannot_read();
    return value == "__unallocated__" ? std::string() : std::string(value);  // who has none
  }

  void skip_blanks() {
    take_while([](unsigned char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
  }
  template <typename Fits>
  std::string_view take_while(Fits fits) {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), fits);
    const std::string_view taken = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  bool take(std::string_view sign) {
    skip_blanks();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }
  Error cannot_read() const {
    constexpr size_t kShown = 60;
    return {
        Code::kMalformed,
        "filter: cannot be read at " + (rest_.empty() ? "its end" : in_quotes(rest_.substr(0, kShown))) +
            R"( (write namespace:"a","b"+(node!:"n1"|label[team]<~:"x"); signs are : ~: <~: ~>: and ! before them, )"
            "+ is and, | is or, both together need parentheses; + is %2B in an address)"};
  }

  std::string_view rest_;
  size_t values_ = 0;
};

}  // namespace

bool is_label_name(std::string_view name) {
  constexpr size_t kLongest = 317;  // of Kubernetes: a prefix of 253, a slash and a name of 63
  return !name.empty() && name.size() <= kLongest && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '/';
  });
}

bool AllocationFilter::matches(const ValueOf& value_of) const {
  const auto fits = [&](const AllocationFilter& part) { return part.matches(value_of); };
  if (kind == Kind::kAll) return std::all_of(parts.begin(), parts.end(), fits);
  if (kind == Kind::kAny) return std::any_of(parts.begin(), parts.end(), fits);
  const std::string has = value_of(property);
  const bool found = std::any_of(values.begin(), values.end(), [&](const std::string& value) {
    return kind == Kind::kIs       ? has == value
           : kind == Kind::kBegins ? has.starts_with(value)
           : kind == Kind::kEnds   ? has.ends_with(value)
                                   : has.find(value) != has.npos;
  });
  return found != negated;
}

void AllocationFilter::add_properties_to(std::set<std::string>& all) const {
  if (!property.empty()) all.insert(property);
  for (const AllocationFilter& part : parts) part.add_properties_to(all);
}

Result<AllocationFilter> parse_allocation_filter(std::string_view text) {
  return Parser(text).whole();
}

}  // namespace gpuledger::app
