// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "app/bill/bill_books.h"

namespace gpuledger::app {

// Who has an allocation of a GPU pays for that, used or not, and not for the work as well.
class Allocated {
 public:
  explicit Allocated(const BillBooks& books) : books_(books) {
    for (const auto& [key, allocation] : books.allocations) {
      pods_.insert(place(key.node, key.gpu, books.facts.owners.at(key.owner), true));
      name_spaces_.insert(place(key.node, key.gpu, books.facts.owners.at(key.owner), false));
    }
  }
  bool pays(const BillNode& node, const std::string& gpu, const std::string& owner_key) const {
    const BillFacts::Owner& owner = books_.facts.owners.at(owner_key);
    if (owner.kind != owner_kind(OwnerKind::kPod).word) return false;
    // Pods that ended without a series of their own: any of the namespace.
    if (owner.form == BillFacts::Owner::Form::kEnded) return name_spaces_.contains(place(node, gpu, owner, false));
    return pods_.contains(place(node, gpu, owner, true));
  }

 private:
  using Place = std::tuple<BillNode, std::string, std::string, std::string>;
  static Place place(const BillNode& node, const std::string& gpu, const BillFacts::Owner& owner, bool of_pod) {
    const auto label = [&](std::string_view name) {
      const auto found = owner.labels.find(std::string(name));
      return found == owner.labels.end() ? std::string() : found->second;
    };
    return {node, gpu, label(kNamespaceField.name), of_pod ? label(kPodField.name) : std::string()};
  }

  const BillBooks& books_;
  std::set<Place> pods_, name_spaces_;
};

}  // namespace gpuledger::app
