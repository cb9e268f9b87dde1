// SPDX-License-Identifier: Apache-2.0
#include "http/password_check.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <memory>
#include <utility>

namespace gpuledger::http {
namespace {

// bcrypt ignores the rest.
constexpr size_t kLongestPassword = 72;

std::optional<std::string> parse_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::string_view digits = text.substr(0, text.size() - padding);
  // OpenSSL accepts white space around it and '=' anywhere.
  if (text.size() % 4 != 0 || digits.find_first_not_of(kDigits) != digits.npos) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(text.data()),
                  static_cast<int>(text.size()));
  out.resize(out.size() - padding);
  return out;
}

bool bcrypt_matches(const std::string& password, const std::string& hash) {
  // 32 KiB; too much for a worker thread's stack.
  const auto scratch = std::make_unique<crypt_data>();
  const char* computed = ::crypt_r(password.c_str(), hash.c_str(), scratch.get());
  const std::string_view result = computed == nullptr ? "" : computed;
  return result.size() == hash.size() && CRYPTO_memcmp(result.data(), hash.data(), hash.size()) == 0;
}

// Without randomness it stays zero: the digests are then plain SHA-256 in our own memory, no worse than the passwords
// that pass through it.
std::string random_key() {
  std::string key(32, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()), static_cast<int>(key.size())) != 1) key.assign(32, '\0');
  return key;
}

}  // namespace

std::optional<Credentials> parse_basic_auth(std::string_view header) {
  constexpr std::string_view kScheme = "basic ";
  if (header.size() < kScheme.size()) return std::nullopt;
  for (size_t i = 0; i < kScheme.size(); ++i)
    if ((header[i] >= 'A' && header[i] <= 'Z' ? header[i] - 'A' + 'a' : header[i]) != kScheme[i]) return std::nullopt;
  header.remove_prefix(kScheme.size());
  while (header.starts_with(' ')) header.remove_prefix(1);
  const auto decoded = parse_base64(header);
  if (!decoded) return std::nullopt;
  const auto colon = decoded->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credentials{decoded->substr(0, colon), decoded->substr(colon + 1)};
}

PasswordCheck::PasswordCheck(std::map<std::string, std::string> users, const PasswordCheck* earlier)
    : users_(std::move(users)), key_(earlier ? earlier->key_ : random_key()) {
  if (earlier) good_ = earlier->good_among(users_);
}

std::map<std::string, std::string> PasswordCheck::good_among(const std::map<std::string, std::string>& users) const {
  std::map<std::string, std::string> good;
  const MutexLock lock(mutex_);
  for (const auto& [user, mark] : good_) {
    const auto now = users.find(user), before = users_.find(user);
    if (now != users.end() && now->second == before->second) good.emplace(user, mark);
  }
  return good;
}

PasswordCheck::Recall PasswordCheck::recall(const Credentials& credentials) const {
  const std::string mark = digest(credentials);
  if (mark.empty()) return Recall::kUnknown;
  MutexLock lock(mutex_);
  const auto good = good_.find(credentials.user);
  if (good == good_.end()) return Recall::kUnknown;
  const bool same =
      good->second.size() == mark.size() && CRYPTO_memcmp(good->second.data(), mark.data(), mark.size()) == 0;
  return same ? Recall::kGood : Recall::kBad;
}

bool PasswordCheck::verify(const Credentials& credentials) {
  if (users_.empty()) return false;
  if (const Recall known = recall(credentials); known != Recall::kUnknown) return known == Recall::kGood;
  const auto user = users_.find(credentials.user);
  const bool known = user != users_.end();
  const bool matches = bcrypt_matches(credentials.password, known ? user->second : users_.begin()->second);
  // crypt ends at a NUL, so a password with one would pass as its own beginning.
  if (!known || !matches || credentials.password.find('\0') != std::string::npos) return false;
  const std::string mark = digest(credentials);
  MutexLock lock(mutex_);
  if (!mark.empty()) good_[credentials.user] = mark;
  return true;
}

std::string PasswordCheck::digest(const Credentials& credentials) const {
  // A user name cannot contain a colon, so that pairs cannot be confused.
  const std::string both = credentials.user + ":" + credentials.password.substr(0, kLongestPassword);
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
           reinterpret_cast<const unsigned char*>(both.data()), both.size(), out, &size) == nullptr)
    return {};
  return {reinterpret_cast<const char*>(out), size};
}

}  // namespace gpuledger::http
