// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace gpuledger::http {

struct Credentials {
  std::string user;
  std::string password;
};

// The value of an Authorization header. Empty if it is not Basic or not base64 of "user:password".
std::optional<Credentials> parse_basic_auth(std::string_view header);

// One set of users, as long as the file is unchanged. Any thread.
class PasswordCheck {
 public:
  enum class Recall { kGood, kBad, kUnknown };

  // users: name -> bcrypt hash. earlier: its results for users with an unchanged hash are kept.
  explicit PasswordCheck(std::map<std::string, std::string> users, const PasswordCheck* earlier = nullptr);

  // Quick. A user has one password: once it is known, all others are wrong without bcrypt.
  Recall recall(const Credentials& credentials) const;

  // Takes as long as bcrypt, also for an unknown user, so that the time does not reveal names.
  bool verify(const Credentials& credentials);

 private:
  std::string digest(const Credentials& credentials) const;
  // Of those whose hash is still the same.
  std::map<std::string, std::string> good_among(const std::map<std::string, std::string>& users) const;

  const std::map<std::string, std::string> users_;
  const std::string key_;  // random, so that a digest is worthless outside this object
  mutable Mutex mutex_;
  std::map<std::string, std::string> good_ GL_GUARDED_BY(mutex_);  // user -> digest of the right password
};

}  // namespace gpuledger::http
