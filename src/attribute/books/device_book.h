// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "attribute/books/energy_meter.h"
#include "attribute/books/idle_tracker.h"
#include "attribute/books/power_floor.h"
#include "attribute/books/self_check.h"
#include "attribute/estimate/estimator.h"
#include "attribute/estimate/shares.h"
#include "attribute/state/state.h"
#include "model/identity.h"
#include "model/ledger.h"
#include "model/policy.h"
#include "model/sample.h"

namespace gpuledger::attribute {

// The books of one GPU. Every joule of its meter is booked exactly once: to a process (and so to its
// owner) or to a reason. Bookings are final.
class DeviceBook {
 public:
  // opened_at: wall time of the first batch.
  DeviceBook(std::shared_ptr<const DeviceDescription> description, const Constants& constants, Nanoseconds opened_at);

  void advance(const DeviceSample& sample, const SampleBatch& batch, const IdentityMap& identities,
               const BookingRules& rules);
  // The GPU is not in the batch: its gauges go, its books stay, and the next sample covers the gap.
  void mark_down(Nanoseconds now);
  void evaluate_idleness();

  // An account to drop (of an exited process) or to close (of an owner without processes).
  struct Ended {
    Nanoseconds at{0};
    uint64_t id = 0;
    auto operator<=>(const Ended&) const = default;
  };
  void forget_exited(Nanoseconds now, const BookingRules& rules);
  std::vector<Ended> exited_accounts() const;
  std::vector<Ended> ended_owners() const;
  // Drops the accounts up to this one, the oldest first. Returns how many.
  size_t forget_accounts(const Ended& last);
  size_t close_owners(const Ended& last);
  // The Slurm jobs that had a step closed since the last call. Their other steps, on any GPU, are marked.
  std::set<Name> take_closed_jobs() { return std::exchange(closed_jobs_, {}); }
  void mark_steps_closed(const std::set<Name>& jobs);

  uint32_t gpu_index() const { return description_->index; }
  size_t accounts() const { return accounts_.size(); }
  size_t owners() const { return owners_.size(); }
  void write_to(Ledger& ledger, Timestamp at, const BookingRules& rules) const;

  // Restored once, before the first advance(). Of a state from another boot only the books count: its processes have
  // exited, and the hardware counter was reset.
  DeviceState state(const std::string& boot_id) const;
  void restore(const DeviceState& state, const std::string& boot_id, Timestamp now);

 private:
  // A process whose owner changes (its pod became known) gets a new account: the old owner keeps its charges,
  // and an owner's counter stays the sum of its processes.
  using AccountKey = std::tuple<ProcKey, std::optional<MigId>, Owner>;

  struct OwnerBook {
    uint64_t id = 0;  // never used again on this GPU
    Booked booked;
    size_t accounts = 0;  // of its processes, also exited ones
    std::optional<Bytes> memory_peak;
    Name uid;  // of its processes, if all have the same
    Name user_name;
    bool users_differ = false;
    JobFacts job;
    bool steps_closed = false;  // some other steps of its job are in closed accounts
    Nanoseconds last_seen{0};   // when one of them ran or was charged
    mutable size_t place = 0;   // in the ledger that is being written
  };

  struct Account {
    Account(uint64_t number, Nanoseconds now) : id(number), idle(now) {}

    uint64_t id;                 // never used again on this GPU
    uint64_t kin = 0;            // equal for all of one kind; 0: none
    OwnerBook* owner = nullptr;  // in owners_, which outlives this; null until it is needed
    ProcessIdentity identity;
    std::optional<MigInstance> mig;
    Booked booked;
    Booked inherited;      // from dropped processes with the same labels
    Energy static_energy;  // of what is booked
    Energy last_step;      // of it, if `charged_in` is the current step
    uint64_t charged_in = 0;
    double seconds_booked = 0;  // of the estimator's claim
    bool was_there = false;     // at the end of the last step
    uint64_t seen_in = 0;       // its last step, counted from 1
    IdleTracker idle;
    std::optional<Nanoseconds> exited;
    bool momentary = false;
    std::optional<Ratio> sm;
    std::optional<Ratio> memory_utilization;
    std::optional<Ratio> encoder;  // since its first use
    std::optional<Ratio> decoder;  // likewise
    bool has_encoded = false;
    bool has_decoded = false;
    std::optional<Bytes> memory;
    std::optional<Bytes> memory_peak;  // of it and of dropped processes with the same labels
    bool compute = false;
    bool graphics = false;
    void forget_gauges();
  };
  using Accounts = std::map<AccountKey, Account, std::less<>>;

  // The processes that were on the GPU at some moment of the step, with the driver's data.
  struct Present {
    uint64_t step = 0;                  // accounts with this seen_in are on the GPU; the others have left
    std::unordered_set<uint64_t> gone;  // exited: they worked, but are not in /proc
    std::vector<Accounts::iterator> who;
    std::vector<Tenant> tenants;
    std::vector<std::pair<Nanoseconds, Nanoseconds>> stays;  // start and end of each, as far as known
    bool anyone_working = false;
    bool mps_hides = false;  // clients' work shows as their server's

    bool has(const Account& account) const { return step != 0 && account.seen_in == step; }
  };

  // The processes that ran during a time without samples, and estimates of their use.
  struct Survivors {
    std::vector<Account*> who;
    std::vector<double> weights;
    size_t others = 0;  // that came or left
  };

  Survivors survivors(const Present& present);
  void book_absence(Energy energy, Nanoseconds time, const Survivors& survivors, const BookingRules& rules);
  void book_stall(const EnergyMeter::Step& step, const Present& present, const BookingRules& rules);
  bool beyond_belief(Energy energy, Nanoseconds time) const;
  void restore_account(const AccountState& state, bool same_boot, Nanoseconds now);
  void restore_idleness(const AccountState& state, Nanoseconds saved_at);

  Present gather(const DeviceSample& sample, const IdentityMap& identities);
  void add_tenant(Accounts::iterator account, const ProcessSample& process, const DeviceSample& sample,
                  Present& present);
  void add_those_who_left(Present& present);
  void divide_instances(Present& present) const;
  Accounts::iterator first_account(const ProcKey& process, const std::optional<MigId>& mig);
  Accounts::iterator find_living(Pid pid);
  Accounts::iterator find_recent(Pid pid);
  bool seen_under_any_owner(const AccountKey& key, const Present& present);
  Accounts::iterator open_account(const ProcessSample& process, const ProcessIdentity* identity);
  void retire_missing(const Present& present, bool step_ended);
  void note_peaks();
  static void note_user(const ProcessIdentity& identity, OwnerBook& owner);
  static void note_job(const JobFacts& job, OwnerBook& owner);
  void bequeath(const AccountKey& key, const Account& old);
  template <typename Matches>
  size_t forget_if(Matches matches);
  void close_owner(const Owner& owner, const OwnerBook& book);
  bool has_ended(const OwnerBook& book) const;
  std::map<Name, Nanoseconds> last_seen_of_jobs() const;
  void keep_closed_few();
  bool wait_for_utilization(const DeviceSample& sample, const Present& present, Nanoseconds pending) const;
  // False: nothing can be learned from the step.
  bool book(const EnergyMeter::Step& step, const Present& present, const DeviceSample& sample,
            const BookingRules& rules);
  void book_to_tenants(const EnergyMeter::Step& step, const Present& present, const DeviceSample& sample,
                       const BookingRules& rules);
  // Without utilization: by time, if no two of them overlap.
  static std::optional<std::vector<double>> shares_by_turns(const EnergyMeter::Step& step, const Present& present,
                                                            const DeviceSample& sample, Nanoseconds now);
  void book_to_reason(Energy energy, Reason reason);
  void book_claims(Energy dynamic, const Present& present, const std::vector<double>& shares, bool alone);
  void book_weighted(Energy energy, const std::vector<double>& shares, const Present& present, bool is_static);
  void book_to(Account& account, Energy energy, bool alone, bool is_static);
  void count_xids(const DeviceSample& sample, Nanoseconds seen);
  void begin_step(Energy energy);
  void note_counter(const DeviceSample& sample);
  OwnerBook& owner_of(Account& account);
  void join(Account& account, OwnerBook& owner);
  double owed(const Account& account) const;
  static bool quiet(const DeviceSample& sample, const Present& present);
  void use_estimator(Attribution attribution);
  // The estimator's input for the step.
  Step observation(const EnergyMeter::Step& step, const Present& present, const DeviceSample& sample,
                   const std::optional<std::vector<double>>& shares, Energy dynamic);
  void add_readings(const DeviceSample& sample, Step& observed) const;
  void add_members(const Present& present, Step& observed);
  static void add_residency(const Present& present, const DeviceSample& sample, Step& observed);
  void add_gpu_time(const Present& present, const std::optional<std::vector<double>>& shares, Nanoseconds time);
  void check_split(const Step& observed, const Present& present);
  double standard_error(const Account& account, double owed) const;
  double owner_standard_error(const OwnerBook& owner, double owed) const;
  void learn_floors(const EnergyMeter::Step& step, const Present& present, const DeviceSample& sample);
  Power static_power(const BookingRules& rules) const;

  std::shared_ptr<const DeviceDescription> description_;
  bool up_ = false;
  EnergyMeter meter_;
  Energy measured_;
  Energy last_step_;
  GpuTimeSource gpu_time_source_ = GpuTimeSource::kNone;  // of it
  std::optional<BooksOpening> opening_;
  std::optional<Energy> counted_before_;
  uint64_t refused_readings_ = 0;
  std::optional<Nanoseconds> read_at_;  // a slow source gives its last reading again, of the same time
  std::optional<Power> highest_limit_;  // after its limit is lowered a GPU draws more for a moment
  std::array<Energy, kReasonCount> unattributed_{};
  std::map<Owner, OwnerBook> owners_;
  std::map<std::pair<OwnerKind, Name>, Booked> closed_;  // by kind and namespace
  std::deque<Ended> closed_lately_;                      // owners still in the estimator
  std::set<Name> closed_jobs_;                           // see take_closed_jobs()
  std::map<uint64_t, uint64_t> xids_;
  std::map<uint64_t, Nanoseconds> xid_seen_;
  Accounts accounts_;
  PowerFloor idle_floor_;
  PowerFloor resident_floor_;
  SelfCheck self_check_;
  const Constants constants_;
  std::optional<Attribution> attribution_;
  std::unique_ptr<Estimator> estimator_;  // for attribution_
  uint64_t steps_ = 0;                    // samples taken
  uint64_t charges_ = 0;                  // steps that were booked
  size_t exited_ = 0;                     // lower bound of exited accounts
  size_t ended_owners_ = 0;               // without an account
  uint64_t accounts_opened_ = 0;
  uint64_t owners_opened_ = 0;
  Nanoseconds now_{0};                     // of the batch being booked
  size_t last_crowd_ = ~0ul;               // processes in the last step
  std::optional<Nanoseconds> down_since_;  // lost at some moment since the last step
  bool restored_ = false;                  // the current step began before a restart
};

}  // namespace gpuledger::attribute
