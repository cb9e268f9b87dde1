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
  const Owner& owner = identity.owner;
  std::string key;
  switch (owner.kind) {
    case OwnerKind::kPod:
      if (owner.pod.empty()) return 0;
      key.append("pod\n").append(owner.name_space).append("\n").append(workload_of(owner.pod)).append("\n");
      key.append(owner.container);
      break;
    case OwnerKind::kSlurmJob:
      // Steps of one job. The jobs of an array have different numbers, and nothing here names the array.
      key.append("slurm\n").append(owner.job);
      break;
    case OwnerKind::kContainer:
      if (owner.container.empty()) return 0;
      key.append("container\n").append(owner.runtime).append("\n").append(workload_of(owner.container));
      break;
    case OwnerKind::kHost:
      if (owner.unit.empty()) return 0;
      key.append("unit\n").append(owner.unit);
      break;
    case OwnerKind::kUnknown: return 0;
  }
  return hash_of(key.append("\n").append(identity.name));
}

}  // namespace gpuledger::attribute
