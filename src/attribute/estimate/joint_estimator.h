#pragma once

#include <deque>
#include <map>
#include <memory>

#include "attribute/estimate/claims.h"
#include "attribute/estimate/estimator.h"
#include "attribute/estimate/timeline.h"
#include "attribute/estimate/window.h"
#include "attribute/estimate/window_solver.h"

namespace gpuledger::attribute {

// Every process has a signature: what one busy second of it costs in watts and shows in activity. In every window the
// GPU shows the sum of busy times x signatures. Times and signatures of all are estimated together from all evidence,
// and the windows of the last minutes are estimated again as more becomes known. docs/attribution.md says how.
class JointEstimator final : public Estimator {
 public:
  JointEstimator(const Constants& constants, const std::string& model);

  bool observe(const Step& step) override;
  Claim claim(uint64_t account) const override { return claims_.claim(account); }
  double owner_error(uint64_t owner) const override { return claims_.owner_error(owner); }
  void settle(uint64_t account, double joules, double error) override { claims_.add(account, joules, error); }
  void settle_owner(uint64_t owner, double error) override { claims_.add_owner_error(owner, error); }
  void forget_owner(uint64_t owner) override { claims_.forget_owner(owner); }
  void forget(uint64_t account, const ProcKey& process) override;
  std::optional<double> usual_power(const ProcKey& process) const override;
  EstimatorMemory memory() const override;
  void recall(const EstimatorMemory& memory) override;

 private:
  struct Known {
    std::shared_ptr<SignatureBelief> belief;               // of what it does now
    std::vector<std::shared_ptr<SignatureBelief>> phases;  // of what it did before
    size_t accounts = 0;                                   // that are of this process
  };

  struct Kin {
    SignatureBelief belief;
    ProcKey from;  // whose it was, in that version
    uint64_t version = 0;
  };

  void take_in(const WindowInput& input);
  std::shared_ptr<SignatureBelief> belief_of(const Member& member);
  std::shared_ptr<Roster> roster_of(const WindowInput& input);
  Window window_of(const WindowInput& input);
  void add_samples(const WindowInput& input, Roster& roster) const;
  static void weigh_shares(Window& window);
  void solve(Window& window);
  void find_change(const WindowInput& input, Window& window);
  static std::vector<size_t> busiest(const Window& window);
  static void begin_phase(Known& known, std::shared_ptr<SignatureBelief> belief);
  void charge_for_now(const WindowInput& input);
  void withdraw_charge_for_now();
  void note_pace(const Step& step);
  void learn_kin(const WindowInput& input);
  void look_back();
  static uint64_t revision_of(const Window& window);
  static bool shares_moved(const Window& window);
  void drop_oldest();
  void fade(double seconds);

  const Constants constants_;
  const SignaturePrior prior_;
  Timeline timeline_;
  WindowSolver solver_;
  Claims claims_;
  std::map<ProcKey, Known> known_;
  std::map<uint64_t, ProcKey> processes_;  // by account
  std::map<uint64_t, Kin> kin_;
  // By who is there and what each does.
  std::map<std::vector<const void*>, std::weak_ptr<Roster>> rosters_;
  std::deque<Window> history_;  // oldest first
  Window for_now_;              // what is not complete yet; no part of the history
  size_t parts_kept_ = 0;
  size_t next_age_ = 0;  // how old the window is that look_back() estimates next; 0: the newest
  Features last_shown_ = Features::Zero();
  double unfaded_ = 0;  // seconds
};

}  // namespace gpuledger::attribute
