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

TEST_F(PlacesTest, TheOneLongestWithoutARequestGoes) {
  Connection* const first = come("a", "first");
  come("b", "second");
  come("c", "third");
  come("d", "fourth");
  EXPECT_EQ(ended_, Ended{});
  places_.renew(*first);
  come("e", "fifth");
  EXPECT_EQ(ended_, Ended{"second"});
  EXPECT_TRUE(places_.end_longest_silent());
  EXPECT_EQ(ended_, (Ended{"second", "third"}));
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
  come("d", "fourth");
  for (Connection* kept : {first, second, third}) places_.keep(*kept);  // two of four: the third is not
  come("e", "fifth");
  EXPECT_EQ(ended_, Ended{"third"});
  places_.release(*first);
  come("f", "sixth");
  EXPECT_EQ(ended_, (Ended{"third", "first"}));
  for (int i = 0; i < 20; ++i) ASSERT_NE(come("g", "more"), nullptr) << "there is always somebody to go";
}

}  // namespace
}  // namespace gpuledger::http
