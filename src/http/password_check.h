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

// The value of an Authorization header. Nothing where it is not Basic or not base64 of "user:password".
std::optional<Credentials> parse_basic_auth(std::string_view header);

// One set of users, for as long as their file stays the same. Any thread.
class PasswordCheck {
 public:
  enum class Recall { kGood, kBad, kUnknown };

  // users: name -> bcrypt hash. earlier: what it found about users whose hash is still the same is taken over.
  explicit PasswordCheck(std::map<std::string, std::string> users, const PasswordCheck* earlier = nullptr);

  // Quick. A user has one password: once it was found right, every other one is wrong without asking bcrypt.
  Recall recall(const Credentials& credentials) const;

  // Takes as long as bcrypt takes, for an unknown user too, so that time tells nothing about names.
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
