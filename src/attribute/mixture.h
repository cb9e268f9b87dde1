#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
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

// One step of one GPU: what was spent above the static watts, what the GPU showed, who was there.
struct Observed {
  double seconds = 0;
  double dynamic_joules = 0;
  double full_watts = 1;  // what 1 means in the power feature
  Features shown;
  bool mps = false;    // samples name the server, so claimants' busy says nothing
  bool quiet = false;  // nobody worked at all
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
  const std::map<ProcKey, Signature>& signatures() const { return signatures_; }
  void recall(const ProcKey& process, const Signature& signature) { signatures_[process] = signature; }
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
  // Who is there together, and how often the driver's samples caught each.
  struct Company {
    std::vector<ProcKey> who;
    bool mps = false;
    std::vector<double> hits;  // discounted with age, as is their number
    double samples = 0;
    double caught(size_t claimant) const { return samples > 0 ? hits[claimant] / samples : 0; }
  };
  // A step in company, kept so that it can be estimated again.
  struct Record {
    Observed step;
    std::shared_ptr<const Company> company;  // goes on learning after the step
    std::vector<bool> missed;                // by claimant: no sample had caught it for long
    std::vector<Part> parts;
  };
  struct Roles {
    std::vector<size_t> known;
    std::vector<size_t> unknown;
  };
  struct Fit {
    std::vector<double> shares;  // by claimant: of what it shows alone; 0 for the unknown
    double misfit = 0;
  };

  bool meet(const Observed& step);
  void learn(const Record& record);
  Roles roles_of(const Record& record) const;
  bool passive(const Record& record, size_t claimant) const;
  Fit fit(const Record& record, const Roles& roles) const;
  std::vector<Part> estimate(const Record& record) const;
  Roles with_changed_one(const Record& record, const Roles& roles, Fit& best) const;
  void divide_rest(const Record& record, const Roles& roles, double rest, std::vector<Part>& parts) const;
  void book(const Record& record, double sign);
  void revise(const ProcKey& process);
  void revise_company();
  void estimate_again(Record& record);
  const Signature& signature(const ProcKey& process) const;

  std::map<ProcKey, Signature> signatures_;
  std::map<uint64_t, Claim> claims_;
  std::deque<Record> records_;
  std::shared_ptr<Company> company_ = std::make_shared<Company>();
};

}  // namespace gpuledger::attribute
