// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace gpuledger {

// The kind of failure, for counters and for deciding what to do next. The vendor's number or errno text is in the
// message.
enum class Code {
  kUnavailable,   // may recover: driver reload, socket missing, GPU lost
  kNotSupported,  // this GPU or driver lacks it
  kNotFound,
  kPermission,
  kTimeout,
  kMalformed,  // refused input: a file, a flag, a reply
  kInternal,
};

inline const char* code_name(Code code) {
  switch (code) {
    case Code::kUnavailable: return "unavailable";
    case Code::kNotSupported: return "not_supported";
    case Code::kNotFound: return "not_found";
    case Code::kPermission: return "permission";
    case Code::kTimeout: return "timeout";
    case Code::kMalformed: return "malformed";
    case Code::kInternal: return "internal";
  }
  return "internal";
}

struct Error {
  Code code = Code::kInternal;
  std::string message;
};

// A value or the error. A subset of std::expected, so that it can be replaced by it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T value_or(T fallback) const& { return ok() ? value() : std::move(fallback); }

  // The same, with what a failure is about before its message: "--state-file: cannot read ...".
  Result about(std::string_view what) && {
    if (auto* error = std::get_if<1>(&state_)) error->message.insert(0, ": ").insert(0, what);
    return std::move(*this);
  }

  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

struct Nothing {};
using Status = Result<Nothing>;
inline Status ok_status() {
  return Nothing{};
}

// `name` is the value, or the function returns the error: GL_TRY(text, read_file(path, kLargest));
#define GL_TRY(name, ...)                                \
  auto name##_result = (__VA_ARGS__);                    \
  if (!name##_result.ok()) return name##_result.error(); \
  auto name = *std::move(name##_result)

// The same without the value. One statement, also before an `else`.
#define GL_TRY_STATUS(...)                                                         \
  do {                                                                             \
    if (auto gl_status = (__VA_ARGS__); !gl_status.ok()) return gl_status.error(); \
  } while (false)

}  // namespace gpuledger
