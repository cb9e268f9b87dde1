// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "attribute/estimate/claims.h"
#include "attribute/estimate/estimator.h"
#include "attribute/estimate/rosters.h"
#include "attribute/estimate/signatures.h"
#include "attribute/estimate/timeline.h"
#include "attribute/estimate/window.h"
#include "attribute/estimate/window_solver.h"

namespace gpuledger::attribute {

// Every process has a signature: the watts and the activity of the GPU while it is busy. In every window the readings
// of the GPU are the sum of busy times x signatures. All times and signatures are estimated together from all
// evidence. Windows of the last minutes are estimated again when signatures change. See docs/attribution.md.
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
    signatures_.forget(account, process);
  }
  std::optional<double> usual_power(const ProcKey& process) const override { return signatures_.usual_power(process); }
  EstimatorMemory memory() const override { return signatures_.memory(); }
  void recall(const EstimatorMemory& memory) override { signatures_.recall(memory); }

 private:
  // A window without readings; not in the history.
  struct ForNow {
    WindowInput input;
    Window window;
  };

  void take_in(const WindowInput& input);
  Window window_of(const WindowInput& input);
  void solve(Window& window);
  void find_change(const WindowInput& input, Window& window);
  bool find_change_in(Window& window);
  void begin_anew(const WindowInput& input, Window& window, size_t windows);
  static std::vector<size_t> busiest(const Window& window);
  void charge_for_now(const WindowInput& input);
  void withdraw_charge_for_now();
  void charge(const ForNow& now, double sign);
  void claim_seconds(const WindowInput& input, double sign);
  void note_pace(const Step& step);
  void look_back();
  static uint64_t revision_of(const Window& window);
  void drop_oldest();

  const Constants constants_;
  Signatures signatures_;
  Rosters rosters_;
  Timeline timeline_;
  WindowSolver solver_;
  Claims claims_;
  std::deque<Window> history_;  // oldest first
  ForNow for_now_;
  size_t parts_kept_ = 0;
  size_t next_age_ = 0;  // the window that look_back() estimates next; 0: the newest
  Features last_shown_ = Features::Zero();
};

}  // namespace gpuledger::attribute
