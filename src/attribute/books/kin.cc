// SPDX-License-Identifier: Apache-2.0
#include "attribute/books/kin.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace gpuledger::attribute {
namespace {

bool all_of(std::string_view text, int (*kind)(int)) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) { return kind(c) != 0; });
}

// Controllers add "-" and five letters or digits (a pod of a Job or ReplicaSet), before it the ReplicaSet's hash, or an
// ordinal (a StatefulSet, an indexed Job).
std::string_view workload_of(std::string_view pod) {
  const auto cut = [&](auto matches) {
    const size_t dash = pod.rfind('-');
    if (dash == pod.npos || dash == 0 || !matches(pod.substr(dash + 1))) return false;
    pod = pod.substr(0, dash);
    return true;
  };
  if (cut([](std::string_view last) { return all_of(last, std::isdigit); })) return pod;
  if (!cut([](std::string_view last) { return last.size() == 5 && all_of(last, std::isalnum); })) return pod;
  const auto hash = [](std::string_view last) {
    return last.size() >= 8 && last.size() <= 10 && all_of(last, std::isalnum);
  };
  (void)cut([&](std::string_view last) { return hash(last) || all_of(last, std::isdigit); });
  return pod;
}

// FNV-1a: the same in every build, because it is kept in the state file.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash == 0 ? 1 : hash;
}

}  // namespace

uint64_t kin_of(const ProcessIdentity& identity) {
  const OwnerKindRow& kind = owner_kind(identity.owner.kind);
  if (kind.kin.empty()) return 0;
  std::string key(kind.kin_word);
  for (const KinField& field : kind.kin) {
    const Name& value = identity.owner.*field.value;
    if (value.empty() && field.use != KinField::Use::kMayBeEmpty) return 0;
    key.append("\n").append(field.use == KinField::Use::kWorkload ? workload_of(value) : std::string_view(value.str()));
  }
  return hash_of(key.append("\n").append(identity.name));
}

}  // namespace gpuledger::attribute
