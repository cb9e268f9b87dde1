// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <regex>

#include "unit/app/bill/fake_prometheus.h"

// Random histories of machines that boot, come late or get another GPU, of exporters that restart with their state, an
// older one or none, of targets out of reach and a server that is away. Each is billed over two adjoining spans and
// over both, and compared with what each machine has used.
namespace gpuledger::app {
namespace {

constexpr int64_t kTick = 20;  // seconds
constexpr int64_t kFirst = -3 * kHour;
constexpr int64_t kLast = 6 * kHour;

// The books of a GPU as they were at some time.
struct Books {
  int64_t opened = 0;
  double run = 1;
  int64_t counted = 0;  // joules
  int64_t used = 0;     // of the machine at that time
  int64_t booted = 0;
};

class Machine {
 public:
  Machine(std::string name, std::mt19937_64& random, bool joins) : name_(std::move(name)), random_(random) {
    watts_ = 50 + below(600);
    every_ = kTick * (2 + below(9));
    if (joins) off_until_ = booted_ = kFirst + ticks_below(8 * kHour);
    exporter_from_ = std::max(off_until_, kFirst) + (joins && one_in(3) ? ticks_below(2 * kHour) : ticks_below(600));
  }

  void tick(int64_t now, bool server_is_up, FakePrometheus& server) {
    const bool on = off_until_ <= now;
    if (on) used_ += watts_ * kTick;
    used_at_.push_back(used_);
    if (books_) {
      if (one_in(6)) states_[gpu_].push_back(current());
      if (one_in(600)) end_exporter(now + kTick + (one_in(2) ? ticks_below(kHour) : ticks_below(120)));
      if (one_in(1200)) turn_off(now);
    } else if (on && now >= exporter_from_) {
      start_exporter(now);
    }
    if (out_of_reach_until_ <= now && one_in(1000)) out_of_reach_until_ = now + ticks_below(2 * kHour);
    if (server_is_up && now % every_ == 0) scrape(now, server);
  }

  const std::string& name() const { return name_; }
  int64_t joules(int64_t seconds) const { return watts_ * seconds; }
  int64_t every() const { return every_; }
  bool was_seen(int64_t until) const { return first_seen_ && *first_seen_ <= until; }
  int64_t first_boot() const { return first_boot_; }
  int64_t used(int64_t from, int64_t to) const { return used_until(to) - used_until(from); }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t ticks_below(int64_t seconds) { return below(seconds) / kTick * kTick; }
  bool one_in(int64_t n) { return below(n) == 0; }

  Books current() const {
    Books books = *books_;
    books.counted += used_ - books.used;
    books.used = used_;
    return books;
  }
  void end_exporter(int64_t back_at) {
    if (one_in(2)) states_[gpu_].push_back(current());  // else it was killed
    books_.reset();
    exporter_from_ = back_at;
  }
  void turn_off(int64_t now) {
    if (!books_) return;
    off_until_ = booted_ = now + kTick + ticks_below(kHour);
    end_exporter(off_until_ + ticks_below(300));
    if (one_in(3)) ++gpu_;
  }
  void start_exporter(int64_t now) {
    std::vector<Books>& states = states_[gpu_];
    if (one_in(3)) states.clear();                                                     // its volume was not kept
    if (one_in(5) && states.size() > 1) states.resize(1 + random_() % states.size());  // from a backup
    books_ = states.empty() ? Books{now, 0, 0, used_, booted_} : states.back();
    ++books_->run;
    if (books_->booted != booted_) books_->used = used_;  // the hardware counter began at 0
    books_->booted = booted_;
    started_ = now;
    // Without a label `node` a node is named by its address.
    if (one_in(6)) moved_ = !moved_;
  }
  void scrape(int64_t now, FakePrometheus& server) {
    FakeScrape& one = server.scrape(name_ + (moved_ ? "-moved" : ""), now);
    if (!books_ || out_of_reach_until_ > now) return;  // it failed: all series are stale
    one.card = name_ + "-" + std::to_string(gpu_);
    one.started = static_cast<double>(started_);
    one.booted = static_cast<double>(booted_);
    one.opened = static_cast<double>(books_->opened);
    one.run = books_->run;
    if (!first_seen_) first_seen_ = now, first_boot_ = booted_;
    const auto joules = static_cast<double>(current().counted);
    one.pod("team", "a", joules / 2, joules / 2);
  }
  int64_t used_until(int64_t time) const {
    const int64_t ticks = (std::clamp(time, kFirst, kLast) - kFirst) / kTick;
    return used_at_[static_cast<size_t>(ticks)];
  }

  std::string name_;
  std::mt19937_64& random_;
  int64_t watts_ = 0, every_ = 0, used_ = 0, started_ = 0;
  int64_t booted_ = kFirst - 1000 * kHour, off_until_ = kFirst, exporter_from_ = 0, out_of_reach_until_ = kFirst;
  int gpu_ = 0;
  bool moved_ = false;
  std::optional<int64_t> first_seen_;
  int64_t first_boot_ = 0;
  std::optional<Books> books_;                // while the exporter runs
  std::map<int, std::vector<Books>> states_;  // of each GPU, those that were saved
  std::vector<int64_t> used_at_;
};

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    server_.tells_books = random_() % 8 != 0;
    for (const char* const name : {"m1", "m2"}) machines_.emplace_back(name, random_, random_() % 3 == 0);
    int64_t server_away_until = kFirst;
    for (int64_t now = kFirst; now <= kLast; now += kTick) {
      if (random_() % 1500 == 0) server_away_until = now + static_cast<int64_t>(random_() % 5000);
      for (Machine& machine : machines_) machine.tick(now, now >= server_away_until, server_);
    }
  }

  struct Result {
    bool named = true;  // a gap or a remark, or there is no bill at all
    int64_t seconds_named = 0;
    int64_t millijoules = 0;
  };
  std::map<std::string, Result> bill(int64_t from, int64_t to) {
    BillQuery query;
    query.span = {std::chrono::sys_seconds(std::chrono::seconds(kBegin + from)),
                  std::chrono::sys_seconds(std::chrono::seconds(kBegin + to))};
    BillView view;
    view.by = {"node"};
    const auto statement = make_statement(server_.ask(), query, view);
    std::map<std::string, Result> results;
    if (!statement.ok()) {
      EXPECT_EQ(statement.error().code, Code::kNotFound) << statement.error().message;
      return results;
    }
    EXPECT_EQ(statement->sum_millijoules(), statement->meter_millijoules);
    for (const Machine& machine : machines_) {
      Result& result = results[machine.name()];
      const auto names = [&](const std::string& text) { return text.starts_with(machine.name()); };
      result.named = false;
      for (const BillGap& gap : statement->gaps) {
        if (!names(gap.node)) continue;
        result.named = true;
        result.seconds_named += (gap.span.end - gap.span.begin).count() + 1;
      }
      for (const std::string& remark : statement->remarks) {
        if (!names(remark)) continue;
        result.named = true;
        std::smatch seconds;
        if (std::regex_search(remark, seconds, std::regex(R"(in (\d+) s)"))) {
          result.seconds_named += std::stoll(seconds[1]) + 1;
        }
      }
      for (const BillLine& line : statement->lines) {
        if (names(line.name)) result.millijoules += line.own_millijoules();
      }
    }
    return results;
  }

  void check(int64_t middle, int64_t end) {
    const auto first = bill(0, middle), second = bill(middle, end), both = bill(0, end);
    for (const Machine& machine : machines_) {
      SCOPED_TRACE(machine.name());
      check_use(machine, first, 0, middle);
      check_use(machine, second, middle, end);
      check_use(machine, both, 0, end);
      const auto of = [&](const auto& results) {
        const auto found = results.find(machine.name());
        return found == results.end() ? Result() : found->second;
      };
      const int64_t parts = of(first).millijoules + of(second).millijoules;
      if (parts != of(both).millijoules) {
        EXPECT_TRUE(of(first).named || of(second).named || of(both).named)
            << parts << " mJ in two bills, " << of(both).millijoules << " in one";
      }
    }
  }

  size_t compared() const { return compared_; }

 private:
  // Never more than was used; and if nothing is said, not less.
  void check_use(const Machine& machine, const std::map<std::string, Result>& results, int64_t from, int64_t to) {
    const auto found = results.find(machine.name());
    if (found == results.end()) return;
    constexpr int64_t kLookback = 300, kSetUp = 900;
    const int64_t joules = found->second.millijoules / 1000;
    EXPECT_LE(joules, machine.used(from - kLookback - kTick, to)) << "the past is billed";
    if (!machine.was_seen(to)) return;
    if (!found->second.named) ++compared_;
    // Whether it ran before its last boot nobody can know who has never seen it before.
    const bool arrives = !machine.was_seen(from);
    const int64_t slack =
        machine.joules(kLookback + machine.every() + kTick + (arrives ? kSetUp : 0) + found->second.seconds_named);
    EXPECT_GE(joules, machine.used(arrives ? std::max(from, machine.first_boot()) : from, to) - slack)
        << "something is missing and not named";
  }

  std::mt19937_64 random_;
  std::vector<Machine> machines_;
  FakePrometheus server_;
  size_t compared_ = 0;
};

TEST(BillLaws, TwoBillsAreOneAndNoneBillsThePast) {
  const char* const more = std::getenv("GPU_LEDGER_PROPERTY_SEEDS");
  const uint64_t seeds = more != nullptr ? std::strtoull(more, nullptr, 10) * 100 : 500;
  size_t compared = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    std::mt19937_64 random(seed);
    const int64_t middle = 600 + static_cast<int64_t>(random() % (4 * kHour));
    world.check(middle, middle + 600 + static_cast<int64_t>(random() % (kLast - middle - 600)));
    compared += world.compared();
    if (HasFailure()) break;
  }
  EXPECT_GT(compared, seeds) << "hardly a bill without a remark";
}

}  // namespace
}  // namespace gpuledger::app
