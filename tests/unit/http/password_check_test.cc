// SPDX-License-Identifier: Apache-2.0
#include "http/password_check.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "http/background_worker.h"
#include "http/fair_queue.h"
#include "http/token_bucket.h"
#include "support/eventually.h"
#include "unit/http/bcrypt_hash.h"
#include "unit/http/hash_watch.h"

namespace gpuledger::http {
namespace {

using Recall = PasswordCheck::Recall;

TEST(ParseBasicAuth, ReadsUserAndPassword) {
  const auto plain = parse_basic_auth("Basic YWxpY2U6c2VjcmV0");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->user, "alice");
  EXPECT_EQ(plain->password, "secret");
  const auto colons = parse_basic_auth("bAsIc  YTpiOmM=");
  ASSERT_TRUE(colons);
  EXPECT_EQ(colons->user, "a");
  EXPECT_EQ(colons->password, "b:c");
  const auto empty = parse_basic_auth("Basic Og==");
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->user + empty->password, "");
}

TEST(ParseBasicAuth, RefusesEverythingElse) {
  for (const char* header : {"", "Basic", "Basic ", "Bearer YWxpY2U6c2VjcmV0", "Basic YWxpY2U6c2VjcmV", "Basic !!!!",
                             "Basic YWxpY2U=", "Basic ====", "Basic YTpi YTpi", "Basic YTpi====", "Basic YTpi\n\n\n\n",
                             "Basic OmE=OmE=", "Basic \tYTpi\t  "})
    EXPECT_FALSE(parse_basic_auth(header)) << header;
}

TEST(PasswordCheck, KnowsRightFromWrong) {
  PasswordCheck check({{"alice", bcrypt_hash("secret")}, {"bob", bcrypt_hash("")}});
  EXPECT_TRUE(check.verify({"alice", "secret"}));
  EXPECT_TRUE(check.verify({"bob", ""}));
  EXPECT_FALSE(check.verify({"alice", "Secret"}));
  EXPECT_FALSE(check.verify({"alice", ""}));
  EXPECT_FALSE(check.verify({"bob", "secret"}));
  EXPECT_FALSE(check.verify({"carol", "secret"})) << "the stand-in hash of an unknown user must never let anybody in";
  EXPECT_FALSE(check.verify({"alice", std::string("secret\0more", 11)}));
}

TEST(PasswordCheck, AgreesWithOtherPeoplesHashes) {
  // A test vector that bcrypt implementations share, under the letters that tools write.
  for (const char* letter : {"a", "b", "y"}) {
    PasswordCheck check(
        {{"user", std::string("$2") + letter + "$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"}});
    EXPECT_TRUE(check.verify({"user", "U*U"})) << letter;
    EXPECT_FALSE(check.verify({"user", "U*V"})) << letter;
  }
}

TEST(PasswordCheck, RemembersOnlySuccess) {
  PasswordCheck check({{"alice", bcrypt_hash("secret")}});
  EXPECT_EQ(check.recall({"alice", "secret"}), Recall::kUnknown);
  EXPECT_FALSE(check.verify({"alice", "wrong"}));
  EXPECT_EQ(check.recall({"alice", "wrong"}), Recall::kUnknown);
  EXPECT_TRUE(check.verify({"alice", "secret"}));
  EXPECT_EQ(check.recall({"alice", "secret"}), Recall::kGood);
  EXPECT_EQ(check.recall({"alice", "secret2"}), Recall::kBad) << "she has one password";
  EXPECT_EQ(check.recall({"bob", "secret"}), Recall::kUnknown);
}

TEST(PasswordCheck, LooksAsFarAsBcryptDoes) {
  const std::string longest(72, 'p');
  PasswordCheck check({{"alice", bcrypt_hash(longest)}});
  EXPECT_TRUE(check.verify({"alice", longest + "x"}));
  EXPECT_EQ(check.recall({"alice", longest}), Recall::kGood);
  EXPECT_EQ(check.recall({"alice", longest + "y"}), Recall::kGood) << "as bcrypt has it";
  EXPECT_EQ(check.recall({"alice", longest.substr(1)}), Recall::kBad);
}

TEST(PasswordCheck, TakesOverWhatIsStillTrue) {
  const std::string alice = bcrypt_hash("secret"), bob = bcrypt_hash("hidden");
  PasswordCheck first({{"alice", alice}, {"bob", bob}, {"carol", bob}});
  for (const char* user : {"bob", "carol"}) EXPECT_TRUE(first.verify({user, "hidden"}));
  EXPECT_TRUE(first.verify({"alice", "secret"}));
  const PasswordCheck second({{"alice", alice}, {"bob", bcrypt_hash("newer")}}, &first);
  EXPECT_EQ(second.recall({"alice", "secret"}), Recall::kGood);
  EXPECT_EQ(second.recall({"bob", "hidden"}), Recall::kUnknown) << "another hash";
  EXPECT_EQ(second.recall({"carol", "hidden"}), Recall::kUnknown) << "gone";
}

TEST(FairQueue, PeersTakeTurns) {
  FairQueue<int> queue(6, 4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.push("greedy", i));
  EXPECT_FALSE(queue.push("greedy", 4)) << "no more of one peer";
  EXPECT_TRUE(queue.push("modest", 10));
  EXPECT_TRUE(queue.push("third", 20));
  EXPECT_FALSE(queue.push("fourth", 30)) << "no more of all";
  std::vector<int> order;
  while (auto next = queue.pop()) order.push_back(*next);
  EXPECT_EQ(order, (std::vector<int>{0, 10, 20, 1, 2, 3}));
  EXPECT_TRUE(queue.push("fourth", 30));
  queue.clear();
  EXPECT_FALSE(queue.pop());
}

// tests/bench measures it.
TEST(PasswordCheck, HashesAsMuchForAnUnknownUser) {
  PasswordCheck check({{"alice", bcrypt_hash("secret", 5)}});
  const HashWatch hashes;
  EXPECT_FALSE(check.verify({"alice", "wrong"}));
  EXPECT_FALSE(check.verify({"mallory", "wrong"}));
  ASSERT_EQ(hashes.begun().size(), 2u);
  for (const auto& hash : hashes.begun()) EXPECT_EQ(hash.setting.substr(0, 7), "$2y$05$");
}

TEST(BackgroundWorker, BoundsItsQueue) {
  BackgroundWorker worker(2, 2);
  ASSERT_TRUE(worker.start(Nanoseconds(0), [] {}).ok());
  std::promise<void> release, entered;
  const auto gate = release.get_future().share();
  ASSERT_TRUE(worker.submit(
      "peer",
      [&, gate] {
        entered.set_value();
        gate.wait();
        return true;
      },
      [](bool) {}));
  entered.get_future().wait();
  std::promise<bool> last;
  EXPECT_TRUE(worker.submit(
      "peer", [] { return true; }, [](bool) {}));
  EXPECT_TRUE(worker.submit(
      "peer", [] { return false; }, [&](bool result) { last.set_value(result); }));
  EXPECT_FALSE(worker.submit(
      "peer", [] { return true; }, [](bool) {}));
  release.set_value();
  EXPECT_FALSE(last.get_future().get());
}

TEST(BackgroundWorker, PeersTakeTurns) {
  std::promise<void> release, entered;
  std::vector<std::string> order;  // of the worker's thread, until the last is done
  std::promise<void> last;
  BackgroundWorker worker(8, 4);
  ASSERT_TRUE(worker.start(Nanoseconds(0), [] {}).ok());
  const auto submit = [&](const std::string& peer, std::function<bool()> work, std::function<void(bool)> done) {
    EXPECT_TRUE(worker.submit(peer, std::move(work), std::move(done)));
  };
  const auto note = [&](const std::string& name) { return [&order, name](bool) { order.push_back(name); }; };
  submit(
      "greedy",
      [&] {
        entered.set_value();
        release.get_future().wait();
        return true;
      },
      note("greedy"));
  entered.get_future().wait();
  for (int i = 0; i < 3; ++i)
    submit(
        "greedy", [] { return true; }, note("greedy"));
  submit(
      "modest", [] { return true; }, note("modest"));
  submit(
      "greedy", [] { return true; }, [&](bool) { last.set_value(); });
  release.set_value();
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector<std::string>{"greedy", "greedy", "modest", "greedy", "greedy"}));
}

TEST(BackgroundWorker, StopsAlthoughAJobHangs) {
  auto release = std::make_shared<std::promise<void>>();
  auto finished = std::make_shared<std::promise<void>>();
  auto done_called = std::make_shared<std::atomic<bool>>(false);
  auto entered = std::make_shared<std::promise<void>>();
  BackgroundWorker worker(2, 2);
  ASSERT_TRUE(worker.start(Nanoseconds(0), [] {}).ok());
  ASSERT_TRUE(worker.submit(
      "peer",
      [=] {
        entered->set_value();
        release->get_future().wait();
        finished->set_value();
        return true;
      },
      [=](bool) { *done_called = true; }));
  entered->get_future().wait();
  worker.stop();
  EXPECT_FALSE(worker.submit(
      "peer", [] { return true; }, [](bool) {}));
  release->set_value();
  finished->get_future().wait();
  EXPECT_FALSE(*done_called);
}

TEST(BackgroundWorker, Ticks) {
  auto ticks = std::make_shared<std::atomic<int>>(0);
  BackgroundWorker worker(2, 2);
  ASSERT_TRUE(worker.start(std::chrono::milliseconds(5), [ticks] { ++*ticks; }).ok());
  EXPECT_TRUE(eventually([&] { return *ticks >= 3; }));
}

TEST(TokenBucket, LetsABurstAndThenOnePerInterval) {
  TokenBucket bucket({std::chrono::seconds(1), 2});
  const Nanoseconds start = std::chrono::seconds(100);
  EXPECT_TRUE(bucket.take(start));
  EXPECT_TRUE(bucket.take(start));
  EXPECT_FALSE(bucket.take(start));
  EXPECT_FALSE(bucket.take(start + std::chrono::milliseconds(500)));
  EXPECT_TRUE(bucket.take(start + std::chrono::milliseconds(1100)));
  EXPECT_FALSE(bucket.take(start + std::chrono::milliseconds(1200)));
  EXPECT_TRUE(bucket.take(start + std::chrono::seconds(100)));
  EXPECT_TRUE(bucket.take(start + std::chrono::seconds(100)));
  EXPECT_FALSE(bucket.take(start + std::chrono::seconds(100)));
  TokenBucket unlimited({Nanoseconds(0), 0});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(unlimited.take(start));
}

}  // namespace
}  // namespace gpuledger::http
