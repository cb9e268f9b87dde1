#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

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
  explicit PasswordCheck(std::map<std::string, std::string> users);  // name -> bcrypt hash

  // Quick: whether these very credentials were found right before.
  bool known_good(const Credentials& credentials) const;

  // Takes as long as bcrypt takes, for an unknown user too, so that time tells nothing about names.
  bool verify(const Credentials& credentials);

 private:
  std::string digest(const Credentials& credentials) const;

  const std::map<std::string, std::string> users_;
  std::string key_;  // random, so that a digest is worthless outside this object
  mutable std::mutex mutex_;
  std::set<std::string> good_;
};

}  // namespace gpuledger::http
