// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "attribute/estimate/signatures.h"
#include "attribute/estimate/timeline.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Who was on the GPU together, and what the driver's samples said of their shares of its time.
class Rosters {
 public:
  explicit Rosters(const Constants& constants) : constants_(constants) {}

  // The roster of a window: a known one if the same processes do the same as then.
  std::shared_ptr<Roster> of(const WindowInput& input, Signatures& signatures);
  // The samples of a roster, the older the less, tell the usual share of each. They are a strobe, not independent
  // draws: the driver looks at fixed moments and can catch the same process for seconds on end.
  void add_samples(const WindowInput& input, Roster& roster) const;
  // Gives the parts of a window the shares that its roster has now.
  static void weigh_shares(Window& window);
  // Since they were weighed, by more than is worth another look.
  static bool shares_moved(const Window& window);

 private:
  const Constants constants_;
  // By who is there and what each does.
  std::map<std::vector<const void*>, std::weak_ptr<Roster>> rosters_;
};

}  // namespace gpuledger::attribute
