// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>

#include "attribute/books/engine.h"
#include "attribute/state/state_text.h"
#include "engine_steps.h"
#include "support/batch_builder.h"
#include "support/laws.h"

// The books stay small however many come and go, and no joule is lost or counted twice for it.
namespace gpuledger::attribute {
namespace {

using gpuledger::testing::BatchBuilder;
using gpuledger::testing::pod_owner;

const OwnerAccount* find_owner(const Ledger& ledger, const std::string& pod) {
  const auto found = std::find_if(ledger.owners.begin(), ledger.owners.end(),
                                  [&](const OwnerAccount& account) { return account.owner.pod == pod; });
  return found == ledger.owners.end() ? nullptr : &*found;
}

Energy closed_of(const Ledger& ledger, const std::string& name_space) {
  Energy sum;
  for (const ClosedAccount& closed : ledger.closed) {
    if (closed.name_space == name_space) sum += closed.booked.total();
  }
  return sum;
}

BookingRules short_rules() {
  BookingRules rules;
  rules.retention = std::chrono::seconds(5);
  rules.owner_retention = std::chrono::seconds(30);
  return rules;
}

// One pod works for a second and is gone.
void run_one_pod(Engine& engine) {
  step(engine, BatchBuilder(0).gpu(0, 0).process(1, 1, 0, pod_owner("train")));
  step(engine, BatchBuilder(1).gpu(0, 300'000).process(1, 1, 0, pod_owner("train")));
}

TEST(OwnerRetention, SeriesStayForThatLongAndThenTheJoulesAreInTheClosedAccount) {
  Engine engine(short_rules());
  run_one_pod(engine);
  Ledger ledger;
  for (int second = 2; second <= 31; ++second) ledger = step(engine, BatchBuilder(second).gpu(0, 300'000));
  ASSERT_NE(find_owner(ledger, "train"), nullptr) << "30 s after its end it can still be scraped";
  EXPECT_TRUE(ledger.closed.empty());
  const Energy spent = find_owner(ledger, "train")->booked.total();
  EXPECT_GT(spent, Energy());
  for (int second = 32; second <= 34; ++second) ledger = step(engine, BatchBuilder(second).gpu(0, 300'000));
  EXPECT_EQ(find_owner(ledger, "train"), nullptr);
  ASSERT_EQ(ledger.closed.size(), 1u);
  EXPECT_EQ(ledger.closed[0].kind, OwnerKind::kPod);
  EXPECT_EQ(closed_of(ledger, "ml"), spent);
  EXPECT_TRUE(ledger.closed[0].booked.gpu_time) << "the seconds go with the joules";
  EXPECT_EQ(ledger.folded.owners_over_time, 1u);
}

TEST(OwnerRetention, AnOwnerOutlivesItsListedProcesses) {
  BookingRules rules = short_rules();
  rules.retention = std::chrono::seconds(60);
  Engine engine(rules);
  run_one_pod(engine);
  Ledger ledger;
  for (int second = 2; second <= 50; ++second) ledger = step(engine, BatchBuilder(second).gpu(0, 300'000));
  EXPECT_NE(find_owner(ledger, "train"), nullptr);
  for (int second = 51; second <= 70; ++second) ledger = step(engine, BatchBuilder(second).gpu(0, 300'000));
  EXPECT_EQ(find_owner(ledger, "train"), nullptr);
}

TEST(OwnerRetention, WhoComesBackBeginsAtZeroAndNothingIsCountedTwice) {
  Engine engine(short_rules());
  gpuledger::testing::IncreasesAreWhatWasSpent increases;
  for (int second = 0; second < 200; ++second) {
    BatchBuilder batch(second);
    batch.gpu(0, second * 100'000);
    if (second % 60 < 3) batch.process(1, 1, 7, pod_owner("train"));
    const Ledger ledger = step(engine, batch);
    increases.check(ledger);
    if (second == 59) { EXPECT_EQ(find_owner(ledger, "train"), nullptr); }
    if (second == 61) {
      ASSERT_NE(find_owner(ledger, "train"), nullptr);
      EXPECT_LT(find_owner(ledger, "train")->booked.total(), closed_of(ledger, "ml"));
    }
  }
}

TEST(OwnerRetention, GoesOnOverARestart) {
  Engine first(short_rules());
  first.restore({}, "boot");
  run_one_pod(first);
  for (int second = 2; second <= 20; ++second) step(first, BatchBuilder(second).gpu(0, 300'000));
  auto state = parse_state(write_state(first.state()));
  ASSERT_TRUE(state.ok()) << state.error().message;
  Engine second(short_rules());
  second.restore(*state, "boot");
  Ledger ledger = step(second, BatchBuilder(21).gpu(0, 300'000));
  EXPECT_NE(find_owner(ledger, "train"), nullptr);
  const Energy spent = find_owner(ledger, "train")->booked.total();
  for (int at = 22; at <= 34; ++at) ledger = step(second, BatchBuilder(at).gpu(0, 300'000));
  EXPECT_EQ(find_owner(ledger, "train"), nullptr) << "its 30 s do not begin anew";
  state = parse_state(write_state(second.state()));
  ASSERT_TRUE(state.ok()) << state.error().message;
  Engine third(short_rules());
  third.restore(*state, "boot");
  ledger = step(third, BatchBuilder(35).gpu(0, 300'000));
  EXPECT_EQ(closed_of(ledger, "ml"), spent);
}

Owner slurm_step(const std::string& job, int step) {
  Owner owner;
  owner.kind = OwnerKind::kSlurmJob;
  owner.job = job;
  owner.step = std::to_string(step);
  return owner;
}

std::vector<const OwnerAccount*> steps_of_job(const Ledger& ledger, const std::string& job) {
  std::vector<const OwnerAccount*> steps;
  for (const OwnerAccount& account : ledger.owners) {
    if (account.owner.job == job) steps.push_back(&account);
  }
  return steps;
}

// One step of job 7 in every second, beside a process of job 8.
Ledger run_steps(Engine& engine, int from, int to) {
  Ledger ledger;
  for (int second = from; second <= to; ++second) {
    BatchBuilder batch(second);
    batch.gpu(0, 300'000 * second).process(9000, 1, 0, slurm_step("8", 0));
    const auto number = static_cast<Pid>(second);
    if (second > 0) batch.process(number, 1, 0, slurm_step("7", second));
    ledger = step(engine, batch);
  }
  return ledger;
}

TEST(OwnerRetention, TheStepsOfAJobStayTogether) {
  Engine engine(short_rules());
  Ledger ledger = run_steps(engine, 0, 60);
  EXPECT_EQ(steps_of_job(ledger, "7").size(), 60u) << "the first ended more than 30 s ago, but its job runs";
  for (int second = 61; second <= 93; ++second) ledger = step(engine, BatchBuilder(second).gpu(0, 18'000'000));
  EXPECT_TRUE(steps_of_job(ledger, "7").empty());
}

TEST(Limits, AJobSaysThatEarlierStepsAreClosed) {
  BookingRules rules = short_rules();
  rules.retention = std::chrono::seconds(1);
  rules.most_ended_owners = 10;
  Engine engine(rules);
  Ledger ledger = run_steps(engine, 0, 8);
  ASSERT_EQ(steps_of_job(ledger, "7").size(), 8u);
  for (const OwnerAccount* account : steps_of_job(ledger, "7")) EXPECT_FALSE(account->steps_closed);
  ledger = run_steps(engine, 9, 40);
  const auto steps = steps_of_job(ledger, "7");
  ASSERT_LT(steps.size(), 20u);
  EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [](const OwnerAccount* one) { return one->steps_closed; }));
  ASSERT_FALSE(steps_of_job(ledger, "8").empty());
  for (const OwnerAccount* account : steps_of_job(ledger, "8")) EXPECT_FALSE(account->steps_closed);

  const auto state = parse_state(write_state(engine.state()));
  ASSERT_TRUE(state.ok()) << state.error().message;
  Engine second(rules);
  second.restore(*state, "boot");
  ledger = step(second, BatchBuilder(41).gpu(0, 12'000'000));
  const auto kept = steps_of_job(ledger, "7");
  EXPECT_TRUE(std::any_of(kept.begin(), kept.end(), [](const OwnerAccount* one) { return one->steps_closed; }));
}

TEST(Limits, TheNewestExitedProcessesStay) {
  BookingRules rules;
  rules.most_exited_processes = 10;
  Engine engine(rules);
  Ledger ledger;
  for (int second = 0; second < 100; ++second) {
    const auto pid = static_cast<Pid>(100 + second);
    ledger = step(engine, BatchBuilder(second).gpu(0, second * 100'000).process(pid, 1, 0, pod_owner("churn")));
  }
  EXPECT_EQ(ledger.processes.size(), 11u);
  EXPECT_EQ(ledger.processes.front().identity.key.pid, 189u);
  EXPECT_EQ(ledger.folded.processes_over_limit, 89u);
  EXPECT_TRUE(ledger.closed.empty()) << "their owner lives and has their joules";
}

TEST(Limits, NamespacesWithoutEndAreCountedTogether) {
  BookingRules rules;
  rules.retention = std::chrono::seconds(0);
  rules.most_ended_owners = 0;
  Engine engine(rules);
  Ledger ledger;
  for (int second = 0; second < 1000; ++second) {
    const std::string name = std::to_string(second);
    const auto pid = static_cast<Pid>(100 + second);
    ledger =
        step(engine, BatchBuilder(second).gpu(0, second * 100'000).process(pid, 1, 0, pod_owner(name, "ci-" + name)));
  }
  EXPECT_LE(ledger.closed.size(), 257u);
  EXPECT_GT(closed_of(ledger, std::string(kOtherNamespaces)), Energy());
}

// Ten thousand pods of a second each, with the settings as they come.
TEST(Limits, BooksAndMemoryAreFlatThroughTenThousandPods) {
  Engine engine((BookingRules()));
  gpuledger::testing::IncreasesAreWhatWasSpent increases;
  size_t processes = 0;
  size_t owners = 0;
  size_t after_five_thousand = 0;
  size_t after_all = 0;
  for (int second = 0; second < 10'000; ++second) {
    BatchBuilder batch(second);
    const auto pid = static_cast<Pid>(1000 + second);
    batch.gpu(0, second * 100'000LL)
        .process(pid, 1, 0, pod_owner("job-" + std::to_string(second), "team-" + std::to_string(second % 7)));
    Ledger ledger = engine.advance(batch.batch(), batch.identities());
    if (second % 100 == 0) gpuledger::testing::expect_balanced(ledger);
    // An account stays for far more than ten seconds, so that none ends between two looks.
    if (second % 10 == 0) increases.check(ledger);
    processes = std::max(processes, ledger.processes.size());
    owners = std::max(owners, ledger.owners.size());
    ledger = {};
    if (second == 5'000) after_five_thousand = ::mallinfo2().uordblks;
    if (second == 9'999) after_all = ::mallinfo2().uordblks;
  }
  EXPECT_LE(processes, 1002u);
  EXPECT_LE(owners, 2002u) << "as many as processes stay, and as many without any";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they have allocators of their own
  EXPECT_LT(static_cast<double>(after_all), 1.05 * static_cast<double>(after_five_thousand));
#endif
}

}  // namespace
}  // namespace gpuledger::attribute
