#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "attribute/signature.h"
#include "base/ids.h"

namespace gpuledger::attribute {

// One process in a step, as the mixture sees it.
struct Claimant {
  uint64_t account = 0;
  ProcKey process;
  double busy = 0;  // share of the driver's samples that caught it, times how busy they were
};

// What was spent above the static watts in one step of one GPU, and what the GPU showed.
struct Scene {
  double seconds = 0;
  double dynamic_joules = 0;
  double full_watts = 1;  // what 1 means in the power feature
  Features shown;
  bool mps = false;    // samples name the server, so claimants' busy says nothing
  bool quiet = false;  // nobody worked at all
};

struct Observed : Scene {
  std::vector<Claimant> who;
};

// Learns what each process of one GPU costs, and says what each should have been charged so far.
//
// Alone, a process shows its signature: watts and activity of the GPU's parts. In company the step is unmixed:
// the shares of the known signatures that explain what was shown, helped by the driver's samples; what nobody
// known explains is the unknown ones'. When somebody becomes known later, the steps it shared are estimated
// again, so claims of the past move with knowledge. Formulas and limits: docs/attribution.md.
class Mixture {
 public:
  void advance(const Observed& step);

  // Joules above the static watts that the account should have been charged in all, and how much of that is
  // doubtful (one standard deviation).
  double fair(uint64_t account) const;
  double doubt(uint64_t account) const;
  // Its part of the last step alone.
  double last_part(uint64_t account) const;

  // Charged by another rule (no activity and no samples to go by): counts as fair.
  void settle(uint64_t account, const ProcKey& process, double joules);
  void forget(uint64_t account);

  // Over a restart: what is fair so far, and what was learned.
  using Signatures = std::map<ProcKey, std::shared_ptr<Signature>>;
  const Signatures& signatures() const { return signatures_; }
  void recall(const ProcKey& process, const Signature& signature) {
    signatures_[process] = std::make_shared<Signature>(signature);
  }
  void recall(uint64_t account, const ProcKey& process, double joules, double doubt) {
    claims_[account] = {process, {joules, doubt}, 0};
  }

 private:
  struct Part {
    double joules = 0;
    double doubt = 0;
  };
  struct Claim {
    ProcKey process;
    Part sum;
    double last = 0;
  };
  struct Member {
    uint64_t account = 0;
    ProcKey process;
    std::shared_ptr<Signature> shape;
    double hits = 0;  // of the driver's samples; discounted with age, as is their number
  };
  // Who is there together while the GPU looks alike, and how often the driver's samples caught each. Somebody who
  // begins or stops to work changes the look: samples of before say nothing about now.
  struct Company {
    std::vector<Member> who;
    bool mps = false;
    double samples = 0;
    Features look;                 // mean of what was shown
    double steps = 0;              // in that mean
    std::optional<size_t> lonely;  // the member that was held to be the only one at work
    double caught(size_t member) const { return samples > 0 ? who[member].hits / samples : 0; }
    // One sample more than were drawn, half for and half against: none drawn is no proof. Who was missed for longer
    // than this look lasts is the less likely to be at work in it.
    double probable_time(size_t member, double missed_before) const {
      const double hits = who[member].hits;
      return (hits + 0.5) / ((hits < 0.5 ? std::max(samples, missed_before) : samples) + 1);
    }
    const Signature& shape(size_t member) const { return *who[member].shape; }
  };
  // A step in company, kept so that it can be estimated again.
  struct Record {
    Scene step;
    std::shared_ptr<const Company> company;  // goes on learning after the step
    std::vector<double> missed;              // by member: samples since one caught it, whatever the look
    std::vector<Part> parts;
    bool stale = false;  // more is known now than when it was estimated
  };
  struct Roles {
    std::vector<size_t> known;
    std::vector<size_t> unknown;
  };
  struct Fit {
    std::vector<double> shares;  // by member: of what it shows alone; 0 for the unknown
    double misfit = 0;
  };

  // The driver's sampler draws five tickets a second.
  static constexpr double kSamplesPerSecond = 5;
  // Not caught once in so many samples: less than a ninth of the GPU's time, with 95 % certainty.
  static constexpr double kSamplesToCallPassive = 25;
  static constexpr double kMostTimeOfPassive = 1.0 / 9;

  Company& present() { return *looks_.front(); }

  void gather(const Observed& step);
  void look(const Observed& step);
  static bool somebody_stopped(const Company& company);
  void unlearn_false_loneliness();
  bool meet(const Observed& step);
  void keep(const Record& record);
  void learn(const Record& record, const std::vector<Claimant>& who);
  Roles roles_of(const Record& record) const;
  Fit fit(const Record& record, const Roles& roles) const;
  std::vector<Part> estimate(const Record& record) const;
  Roles with_changed_one(const Record& record, const Roles& roles, Fit& best) const;
  void divide_rest(const Record& record, const Roles& roles, double rest, std::vector<Part>& parts) const;
  void book(const Record& record, double sign);
  void revise(const ProcKey& process);
  void revise_company();
  void estimate_again();

  Signatures signatures_;
  std::unordered_map<uint64_t, Claim> claims_;
  std::deque<Record> records_;  // oldest first
  size_t parts_kept_ = 0;       // in all records
  size_t next_age_ = 0;         // how old the record is that estimate_again() looks at next; 0: the newest
  std::deque<std::shared_ptr<Company>> looks_{std::make_shared<Company>()};  // of those here now; never empty
  std::map<ProcKey, Signature> before_loneliness_;                           // of each lonely one
};

}  // namespace gpuledger::attribute
