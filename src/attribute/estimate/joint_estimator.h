// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>

#include "attribute/estimate/claims.h"
#include "attribute/estimate/companies.h"
#include "attribute/estimate/estimator.h"
#include "attribute/estimate/learner.h"
#include "attribute/estimate/mps_fit.h"
#include "attribute/estimate/timeline.h"
#include "attribute/estimate/window.h"

namespace gpuledger::attribute {

// Every process has a signature: the watts and the activity of the GPU while it is busy. In every window the readings
// of the GPU are the sum of busy times x signatures. All signatures are learned together, and windows of the last
// minutes are divided again when signatures change. See docs/attribution.md.
class JointEstimator final : public Estimator {
 public:
  JointEstimator(const Constants& constants, const std::string& model);

  bool observe(const Step& step) override;
  Claim claim(uint64_t account) const override { return claims_.claim(account); }
  double owner_error(uint64_t owner) const override { return claims_.owner_error(owner); }
  void settle(uint64_t account, double joules, double error) override { claims_.add(account, joules, error); }
  void settle_owner(uint64_t owner, double error) override { claims_.add_owner_error(owner, error); }
  void forget_owner(uint64_t owner) override { claims_.forget_owner(owner); }
  void forget(uint64_t account, const ProcKey& process) override {
    claims_.forget(account);
    learner_.forget(account, process);
  }
  std::optional<double> usual_power(const ProcKey& process) const override { return learner_.usual_power(process); }
  EstimatorMemory memory() const override { return learner_.memory(); }
  void recall(const EstimatorMemory& memory) override { learner_.recall(memory); }

 private:
  // A window without readings; not in the history.
  struct ForNow {
    WindowInput input;
    Window window;
  };

  void take_in(const WindowInput& input);
  Window window_of(const WindowInput& input);
  void divide_again(Window& window);
  void fit_mps();
  void charge_for_now(const WindowInput& input);
  void withdraw_charge_for_now();
  void charge(const Window& window, double sign);
  void claim_seconds(const WindowInput& input, double sign);
  void note_pace(const Step& step);
  void look_back();
  uint64_t revision_of(const Window& window) const;
  void forget_signatures();

  const Constants constants_;
  Companies companies_;
  Timeline timeline_;
  Learner learner_;
  MpsFit mps_fit_;
  Claims claims_;
  std::deque<Window> history_;  // oldest first
  ForNow for_now_;
  size_t parts_kept_ = 0;
  size_t next_age_ = 0;  // the window that look_back() looks at next; 0: the newest
  size_t windows_since_forgetting_ = 0;
  Features last_shown_ = Features::Zero();
};

}  // namespace gpuledger::attribute
