// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "expose/view.h"

// Who stays where there is not room for all.
namespace gpuledger::expose {

// Namespaces of owners that are left out; more are added together.
constexpr size_t kMostClosed = 256;

// The joules by which an account is ranked: its own, or those of the pod or job that it belongs to.
class Spending {
 public:
  explicit Spending(const Ledger& ledger);

  Energy of(std::monostate) const { return {}; }
  Energy of(const ProcessAccount* process) const { return process->booked.total(); }
  Energy of(const OwnerAccount* owner) const { return owner->booked.total(); }
  Energy of(const AllocationAccount* account) const;
  Energy of(const PodFacts* pod) const { return of_name(pod->name_space, pod->pod); }

 private:
  Energy of_name(std::string_view name_space, std::string_view name) const;

  // Of pods, by namespace and name; of Slurm jobs, without a namespace.
  std::map<std::pair<std::string_view, std::string_view>, Energy> by_name_;
};

// Each gets the room it needs, or an equal part of what the others leave.
template <size_t N>
std::array<size_t, N> share(size_t room, const std::array<size_t, N>& needs) {
  std::array<size_t, N> order;
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return needs[a] < needs[b]; });
  std::array<size_t, N> given{};
  for (size_t i = 0; i < N; ++i) {
    given[order[i]] = std::min(needs[order[i]], room / (N - i));
    room -= given[order[i]];
  }
  return given;
}

}  // namespace gpuledger::expose
