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
  // When the counters began at 0, and the number of the run of these books. Empty: the exporter's release does not say,
  // or the books come from a state of such a release.
  std::optional<int64_t> opened_ms;
  std::optional<int64_t> run;
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

// Empty: not known.
struct ScrapeTimes {
  int64_t at_ms = 0;
  std::optional<int64_t> snapshot_ms;  // by the exporter's clock
  std::optional<int64_t> started_ms;   // the exporter
  std::optional<int64_t> booted_ms;    // the node
};

// One scrape of one exporter.
struct NodeReading {
  BillNode node;
  std::string instance;
  std::string copy;      // all labels of its target: those of two servers that scrape it differ
  std::string matchers;  // that select its series, of whatever instance
  int64_t at_ms = 0;
  std::optional<int64_t> snapshot_ms;
  std::optional<int64_t> started_ms;       // of the exporter; empty: the server has none
  std::optional<int64_t> booted_ms;        // the node; empty: not known
  std::map<std::string, GpuReading> gpus;  // by UUID
  std::string lacks;                       // a series whose meter is not there, and more; empty: none

  ScrapeTimes times() const { return {at_ms, snapshot_ms, started_ms, booted_ms}; }
};

// A value in seconds as milliseconds since 1970. Empty: it is no time.
std::optional<int64_t> time_of(double value);
BillNode node_of(const BillSeries& series);
std::string matchers_of(const BillSeries& series);

// Every scrape in the answer, by node and time. Adds what it finds to the facts. Several exporters or copies of one
// node at one time are kept apart by instance; a series that is there twice is an error. `now`: as in read_facts.
Result<std::vector<NodeReading>> read_nodes(const std::vector<BillSeries>& answer, BillFacts& facts, bool now = true);

}  // namespace gpuledger::app
