// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/bill/answer.h"
#include "app/bill/facts.h"
#include "app/bill/sharing.h"
#include "base/result.h"

namespace gpuledger::app {

// In integers of microjoules, or of microseconds of GPU time.
enum class BillQuantity { kAlone, kShared, kGpuTime };

// Accounts that end move to the closed account of their group.
struct BillGroup {
  std::string kind;        // the owner's word, or kNobodyKind
  std::string name_space;  // of pods
  BillQuantity quantity = BillQuantity::kAlone;
  friend auto operator<=>(const BillGroup&, const BillGroup&) = default;
};

struct BillAccount {
  BillGroup group;
  std::string owner;  // a key of BillFacts::owners
  friend auto operator<=>(const BillAccount&, const BillAccount&) = default;
};

// What one scrape says of one GPU.
struct GpuReading {
  int64_t energy = 0;  // microjoules
  std::map<BillAccount, int64_t> accounts;
  std::map<BillGroup, int64_t> closed;
  std::map<std::string, double> standard_errors;  // joules, by owner

  // What the accounts lack to the meter. Up to `rounding` is due to the server's floating point.
  Wide imbalance() const;
  int64_t rounding() const;
};

// An exporter's place. The name is its label node, which stays when a pod's address changes; else its instance.
struct BillNode {
  std::string cluster;
  std::string name;
  friend auto operator<=>(const BillNode&, const BillNode&) = default;
  std::string text() const { return cluster.empty() ? name : cluster + "/" + name; }
};

// What tells one run of an exporter from the next, and whether it began at 0. Empty: the server does not know.
struct ExporterRun {
  std::optional<int64_t> started_ms;
  std::optional<bool> keeps_state;  // it has a --state-file; only where every scrape is read
};

// One scrape of one exporter.
struct NodeReading {
  BillNode node;
  std::string instance;
  std::string copy;      // all labels of its target: those of two servers that scrape it differ
  std::string matchers;  // that select its series, of whatever instance
  int64_t at_ms = 0;
  std::optional<double> snapshot_at;  // seconds since 1970
  std::optional<double> started_at;   // the same; empty: the server has none
  std::optional<bool> keeps_state;
  std::map<std::string, GpuReading> gpus;  // by UUID
  std::string lacks;                       // a series whose meter is not there, and more; empty: none

  ExporterRun run() const;
};

BillNode node_of(const BillSeries& series);
std::string matchers_of(const BillSeries& series);

// Every scrape in the answer, by node and time. Adds what it finds to the facts. Several exporters or copies of one
// node at one time are kept apart by instance; a series that is there twice is an error. `now`: as in read_facts.
Result<std::vector<NodeReading>> read_nodes(const std::vector<BillSeries>& answer, BillFacts& facts, bool now = true);

}  // namespace gpuledger::app
