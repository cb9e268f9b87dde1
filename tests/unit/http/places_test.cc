// SPDX-License-Identifier: Apache-2.0
#include "http/places.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuledger::http {
namespace {

class PlacesTest : public testing::Test {
 protected:
  class Client : public Connection {
   public:
    Client(Places& places, std::vector<std::string>& ended, std::string peer, std::string name)
        : Connection(std::move(peer)), places_(places), ended_(ended), name_(std::move(name)) {}
    void finish() override {
      ended_.push_back(name_);
      places_.remove(*this);
    }

   private:
    Places& places_;
    std::vector<std::string>& ended_;
    const std::string name_;
  };

  Connection* come(const std::string& peer, const std::string& name) {
    if (!places_.make_room(peer)) return nullptr;
    auto client = std::make_shared<Client>(places_, ended_, peer, name);
    places_.add(client);
    return client.get();
  }

  Places places_{4, 3};
  std::vector<std::string> ended_;
};

using Ended = std::vector<std::string>;

TEST_F(PlacesTest, NewOnesGoFirstThenIdleOnesThenThoseBeingAnswered) {
  Connection* const answering = come("a", "answering");
  Connection* const idle = come("b", "idle");
  places_.answering(*idle);
  places_.answered(*idle);
  places_.answering(*answering);
  for (const char* name : {"one", "two"}) come("c", name);
  EXPECT_EQ(ended_, Ended{});
  for (const char* name : {"three", "four", "five"}) come("d", name);
  EXPECT_EQ(ended_, (Ended{"one", "two", "three"})) << "the oldest of those that never asked";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(places_.end_one());
  EXPECT_EQ(ended_, (Ended{"one", "two", "three", "four", "five"}));
  EXPECT_TRUE(places_.end_one());
  EXPECT_EQ(ended_.back(), "idle");
  EXPECT_TRUE(places_.end_one());
  EXPECT_EQ(ended_.back(), "answering");
  EXPECT_FALSE(places_.end_one());
}

TEST_F(PlacesTest, WhoDoesNotReadGoesBeforeWhoReads) {
  Connection* const reads = come("a", "reads");
  places_.answering(*reads);
  for (const char* name : {"stalled", "stalled too", "and this"}) places_.answering(*come("b", name));
  places_.answering(*reads);
  come("c", "new");
  EXPECT_EQ(ended_, Ended{"stalled"});
  EXPECT_TRUE(places_.end_one());
  EXPECT_EQ(ended_, (Ended{"stalled", "stalled too"})) << "a single new one has the time to ask";
}

TEST_F(PlacesTest, TheClientWithTheMostGivesWay) {
  come("kubelet", "probe");
  for (const char* name : {"one", "two", "three"}) come("flood", name);
  for (const char* name : {"four", "five"}) come("another flood", name);
  EXPECT_EQ(ended_, (Ended{"one", "two"}));
  Places places(4, 4);
  const auto idle = [&](const std::string& peer, const std::string& name) {
    auto client = std::make_shared<Client>(places, ended_, peer, name);
    EXPECT_TRUE(places.make_room(peer));
    places.add(client);
    places.answering(*client);
    places.answered(*client);
  };
  ended_.clear();
  idle("prometheus", "kept alive");
  for (const char* name : {"six", "seven", "eight", "nine", "ten"}) idle("flood", name);
  EXPECT_EQ(ended_, (Ended{"six", "seven"}));
}

TEST_F(PlacesTest, AnAnswerToNoRequestCountsForNothing) {
  Connection* const refused = come("a", "refused");
  Connection* const idle = come("b", "idle");
  places_.answering(*idle);
  places_.answered(*idle);
  come("c", "new");
  come("d", "newer");
  places_.answered(*refused);
  come("e", "newest");
  EXPECT_EQ(ended_, Ended{"refused"});
}

TEST_F(PlacesTest, APeerWithItsFillGivesWayItself) {
  come("other", "oldest");
  for (const char* name : {"one", "two", "three", "four", "five"}) ASSERT_NE(come("greedy", name), nullptr);
  EXPECT_EQ(ended_, (Ended{"one", "two"}));
}

TEST_F(PlacesTest, WhoIsKeptStaysAndAtMostHalfAre) {
  Connection* const first = come("a", "first");
  Connection* const second = come("b", "second");
  Connection* const third = come("c", "third");
  Connection* const fourth = come("d", "fourth");
  for (Connection* each : {first, second, third, fourth}) places_.answering(*each);
  for (Connection* kept : {first, second, third}) places_.keep(*kept);  // two of four: the third is not
  come("e", "fifth");
  EXPECT_EQ(ended_, Ended{"third"});
  places_.release(*first);
  come("f", "sixth");
  EXPECT_EQ(ended_, (Ended{"third", "first"})) << "before the fourth, whose answer began later";
  for (int i = 0; i < 20; ++i) ASSERT_NE(come("g", "more"), nullptr) << "there is always somebody to go";
}

}  // namespace
}  // namespace gpuledger::http
