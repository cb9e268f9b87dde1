// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "app/bill/reading.h"
#include "app/bill/sharing.h"

namespace gpuledger::app {

// What one GPU spent in a span, by owner. Counters are only compared, never extrapolated. An account's use between two
// readings is the rise of its counter. A new account's use is its whole counter. For accounts closed in between, it is
// the rise of the closed account minus what they had at the first reading. So every step balances as its two readings
// do.
class GpuBooks {
 public:
  struct Spent {
    // Wide: a bad server can make counters begin again and again.
    Wide alone = 0;                // microjoules
    Wide shared = 0;               // the same
    std::optional<Wide> gpu_time;  // microseconds
    double co2e_grams = 0;
  };
  using Charge = std::pair<std::string, size_t>;  // an owner, and the period of prices
  // What a joule of a step comes with.
  struct Rates {
    double grams_per_microjoule = 0;
    size_t period = 0;
  };
  enum class Step {
    kWentOn,
    kReadBack,    // went on, in another run of the exporter
    kBooted,      // the same after a boot of the node: then the hardware's counter began at 0, whatever they remember
    kBeganAgain,  // other books, opened since the last reading: their counters began at 0
    kWentBack,    // books that were read from an older state: what was spent since the last reading is not known
    kUnclear,     // the same for a release that does not say when its books were opened
  };

  // Energy before the reading belongs to an earlier bill.
  void open(const GpuReading& reading, const ScrapeTimes& times);
  // The counters began at 0 at that time.
  void open_at_zero(const GpuReading& reading, int64_t at_ms);
  // The same books were read under another name of their node, up to now.
  void take_over(GpuBooks& other);
  Step advance(const GpuReading& reading, const ScrapeTimes& times, const Rates& rates, BillFacts& facts);

  // Owners whose energy in the span is negative, and by how many microjoules.
  std::map<std::string, Wide> owing() const;

  // Whether the exporter has restarted or its books are others. Then every scrape since has to be read.
  bool changed(const GpuReading& reading, const ScrapeTimes& times) const;
  // Whether they are the books of the reading, as far as is known.
  bool are_of(const GpuReading& reading) const { return reading.opened_ms && reading.opened_ms == opened_ms_; }
  bool taken_over() const { return taken_over_; }

  int64_t last_at_ms() const { return at_ms_; }
  int64_t first_at_ms() const { return first_ms_; }
  int64_t metered_ms() const { return metered_ms_; }
  Wide meter() const { return meter_; }  // microjoules
  const std::map<Charge, Spent>& spent() const { return spent_; }
  // One standard error of an owner's shared energy in the span, in joules: by how much its error changed, also where it
  // fell, because what was charged wrongly before is then corrected in the span. Empty: it has none.
  std::optional<double> standard_error(const std::string& owner) const;

 private:
  struct Errors {
    double first = 0;
    double last = 0;
    double before = 0;  // of earlier runs of the exporter
  };
  Step judge(const GpuReading& reading, const ScrapeTimes& times) const;
  bool is_known(const GpuReading& reading, const ScrapeTimes& times) const;
  void begin_again(int64_t at_ms);
  void keep_run(const GpuReading& reading, const ScrapeTimes& times);
  void pass_time(int64_t at_ms);
  void keep_errors();  // before they start at 0 or at another value
  void spend(const BillAccount& account, Wide amount, const Rates& rates);
  void book_ended(const GpuReading& reading, std::map<BillGroup, std::map<BillAccount, int64_t>>& fresh,
                  const Rates& rates, BillFacts& facts);

  int64_t first_ms_ = 0;
  int64_t at_ms_ = 0;
  std::optional<int64_t> opened_ms_;
  std::optional<int64_t> run_;
  std::optional<int64_t> started_ms_;
  std::optional<int64_t> snapshot_ms_;
  std::optional<int64_t> booted_ms_;
  std::set<int64_t> earlier_;  // when books were opened that others have followed
  bool taken_over_ = false;
  int64_t metered_ms_ = 0;
  int64_t energy_ = 0;
  Wide meter_ = 0;
  std::map<BillAccount, int64_t> booked_;  // of each account ever seen: its counter when it was last seen
  std::map<BillGroup, Wide> remainder_;    // of the closed accounts: what no account above had
  std::map<Charge, Spent> spent_;
  std::map<std::string, Errors> errors_;
};

}  // namespace gpuledger::app
