// SPDX-License-Identifier: Apache-2.0
#include "http/send_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuledger::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Reader : public Connection {
 public:
  explicit Reader(SendBudget& budget) : Connection("peer"), budget_(budget) {}
  void finish() override {
    cut = true;
    budget_.end(*this);
  }
  bool cut = false;

 private:
  SendBudget& budget_;
};

std::shared_ptr<const std::string> text(size_t size) {
  auto bytes = std::make_shared<std::string>(size, 'x');
  bytes->shrink_to_fit();
  return bytes;
}

TEST(SendBudget, CountsWhatIsSharedOnce) {
  SendBudget budget(2500);
  const auto body = text(1000);
  Reader first(budget), second(budget);
  budget.begin(first, body, seconds(1));
  budget.begin(second, body, seconds(1));
  EXPECT_EQ(budget.held(), body->capacity());
  budget.end(first);
  EXPECT_EQ(budget.held(), body->capacity());
  budget.end(second);
  budget.end(second);
  EXPECT_EQ(budget.held(), 0u);
}

TEST(SendBudget, CutsTheSlowest) {
  SendBudget budget(2500);
  Reader slow(budget), quick(budget), young(budget), next(budget), last(budget);
  budget.begin(slow, text(1000), seconds(10));
  budget.sent(slow, 100);
  budget.begin(quick, text(1000), seconds(10));
  budget.sent(quick, 900);
  budget.begin(young, text(1000), seconds(15));
  EXPECT_TRUE(slow.cut);
  EXPECT_FALSE(quick.cut);
  // Nobody is called slow in his first second.
  budget.begin(next, text(1000), seconds(15) + milliseconds(500));
  EXPECT_TRUE(quick.cut);
  EXPECT_FALSE(young.cut);
  budget.begin(last, text(1000), seconds(15) + milliseconds(600));
  EXPECT_TRUE(young.cut) << "unless all are young: then the oldest goes";
}

TEST(SendBudget, LeavesOneThatIsTooLargeByItself) {
  SendBudget budget(100);
  Reader first(budget), same(budget), other(budget);
  const auto large = text(1000);
  budget.begin(first, large, seconds(1));
  budget.begin(same, large, seconds(5));
  EXPECT_FALSE(first.cut) << "who reads the same bytes sets none free";
  budget.begin(other, text(1000), seconds(6));
  EXPECT_TRUE(first.cut && same.cut);
  EXPECT_FALSE(other.cut);
}

}  // namespace
}  // namespace gpuledger::http
