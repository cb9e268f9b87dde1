// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace gpuledger {

// Text that is made once and passed from stage to stage: copies share it, so that a crowded node does not copy all
// names in every cycle. Immutable; assigning another text does not change the copies.
class Name {
 public:
  Name() = default;
  Name(std::string text) {  // NOLINT(google-explicit-constructor)
    if (!text.empty()) text_ = std::make_shared<const std::string>(std::move(text));
  }
  Name(std::string_view text) : Name(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  Name(const char* text) : Name(std::string(text)) {}       // NOLINT(google-explicit-constructor)

  const std::string& str() const {
    static const std::string nothing;
    return text_ ? *text_ : nothing;
  }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return str(); }    // NOLINT(google-explicit-constructor)
  bool empty() const { return !text_; }
  bool starts_with(std::string_view start) const { return str().starts_with(start); }

  friend bool operator==(const Name& a, const Name& b) { return a.text_ == b.text_ || a.str() == b.str(); }
  friend std::strong_ordering operator<=>(const Name& a, const Name& b) {
    return a.text_ == b.text_ ? std::strong_ordering::equal : a.str() <=> b.str();
  }
  template <typename Text>
  requires(!std::same_as<Text, Name> && std::convertible_to<const Text&, std::string_view>) friend bool operator==(
      const Name& a, const Text& b) {
    return a.str() == std::string_view(b);
  }
  template <typename Text>
  requires std::convertible_to<const Text&, std::string_view>
  friend std::string operator+(const Name& a, const Text& b) {
    return std::string(a.str()).append(std::string_view(b));
  }
  template <typename Text>
  requires(!std::same_as<Text, Name> && std::convertible_to<const Text&, std::string_view>) friend std::string
  operator+(const Text& a, const Name& b) {
    return std::string(std::string_view(a)).append(b.str());
  }
  template <typename Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const Name& name) {
    return out << name.str();
  }

 private:
  std::shared_ptr<const std::string> text_;  // null: empty
};

}  // namespace gpuledger
