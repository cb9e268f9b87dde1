// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "attribute/estimate/signatures.h"
#include "attribute/estimate/timeline.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Sets of processes that ran together, and their shares of GPU time by the driver's samples.
class Rosters {
 public:
  explicit Rosters(const Constants& constants) : constants_(constants) {}

  // The roster of a window: a known one if processes and phases are the same.
  std::shared_ptr<Roster> of(const WindowInput& input, Signatures& signatures);
  // The samples of a roster, with decaying weights, give the usual share of each process. They are not independent:
  // the driver samples at a fixed rate and can hit the same process for seconds.
  void add_samples(const WindowInput& input, Roster& roster) const;
  // Sets the window's shares to the current ones of its roster.
  static void weigh_shares(Window& window);
  // True: the shares changed materially since weigh_shares().
  static bool shares_moved(const Window& window);

 private:
  const Constants constants_;
  // By processes and their phases.
  std::map<std::vector<const void*>, std::weak_ptr<Roster>> rosters_;
};

}  // namespace gpuledger::attribute
