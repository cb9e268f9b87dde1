// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "app/bill/bill_books.h"

namespace gpuledger::app {

// Owners with an allocation pay for allocated hours, used or not. They do not also pay for hours of work.
class Allocated {
 public:
  explicit Allocated(const BillBooks& books) : books_(books) {
    for (const auto& [key, allocation] : books.allocations) {
      const BillFacts::Owner& owner = books.facts.owners.at(key.owner);
      holders_.insert(place(key.node, key.gpu, owner, true));
      groups_.insert(place(key.node, key.gpu, owner, false));
    }
  }
  bool pays(const BillNode& node, const std::string& gpu, const std::string& owner_key) const {
    const BillFacts::Owner& owner = books_.facts.owners.at(owner_key);
    // Those that ended without a series of their own: any of the namespace, or any job.
    if (owner.form == BillFacts::Owner::Form::kEnded) return groups_.contains(place(node, gpu, owner, false));
    return holders_.contains(place(node, gpu, owner, true));
  }

 private:
  using Place = std::tuple<BillNode, std::string, std::string, std::string, std::string>;
  static Place place(const BillNode& node, const std::string& gpu, const BillFacts::Owner& owner, bool by_name) {
    const auto label = [&](std::string_view name) {
      const auto found = owner.labels.find(std::string(name));
      return found == owner.labels.end() ? std::string() : found->second;
    };
    const std::string name = label(kPodField.name) + label(kSlurmJobIdField.name);  // it has one of the two
    return {node, gpu, owner.kind, label(kNamespaceField.name), by_name ? name : std::string()};
  }

  const BillBooks& books_;
  std::set<Place> holders_, groups_;
};

}  // namespace gpuledger::app
