// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/history.h"
#include "model/snapshot.h"

namespace gpuledger::app {

// The last hour of every GPU, in memory only: it is empty after a restart. Written by the sampler thread, read through
// the snapshot. Its size is limited: if an hour does not fit, the oldest steps are dropped.
class HistoryKeeper {
 public:
  static constexpr Nanoseconds kStep = std::chrono::seconds(10);
  static constexpr Nanoseconds kSpan = std::chrono::hours(1);
  static constexpr size_t kOwnersPerPoint = 16;  // the largest; all the rest is one sum
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  // Adds the cycle if a step is over. True: there is a new history.
  bool add(const Cycle& cycle);
  std::shared_ptr<const History> history() const { return history_; }
  size_t bytes() const { return bytes_; }  // of the steps and their owners

 private:
  // A GPU's books when its step began.
  struct Base {
    Nanoseconds at{0};
    Energy measured;
    Energy unattributed;
    std::vector<std::pair<Owner, Energy>> owners;  // by owner
  };
  using Owners = std::vector<OwnerAccount>::const_iterator;
  struct ByContent {
    bool operator()(const std::shared_ptr<const HistoryOwner>& a, const std::shared_ptr<const HistoryOwner>& b) const {
      return *a < *b;
    }
  };

  std::optional<HistoryPoint> point_of(const DeviceAccount& device, Owners begin, Owners end, const Base& now);
  std::vector<HistoryPart> largest(const Base& before, Owners begin, Owners end);
  std::shared_ptr<const HistoryOwner> intern(HistoryOwner owner);
  void forget(const HistoryPart& part);
  void drop_oldest();
  void publish(const Timestamp& at);

  std::optional<Nanoseconds> last_;
  std::map<GpuUuid, Base> bases_;
  std::map<std::shared_ptr<const HistoryOwner>, size_t, ByContent> owners_;  // in how many parts of steps_
  std::vector<std::shared_ptr<const HistoryStep>> steps_;
  size_t bytes_ = 0;
  std::shared_ptr<const History> history_;
};

}  // namespace gpuledger::app
