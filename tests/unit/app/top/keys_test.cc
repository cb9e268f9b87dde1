// SPDX-License-Identifier: Apache-2.0
#include "app/top/keys.h"

#include <gtest/gtest.h>

#include "app/top/view.h"

namespace gpuledger::app::top {
namespace {

std::vector<KeyKind> kinds(const std::vector<Key>& keys) {
  std::vector<KeyKind> kinds;
  for (const Key& key : keys) kinds.push_back(key.kind);
  return kinds;
}
using K = KeyKind;
using Kinds = std::vector<KeyKind>;

TEST(TopKeys, Sequences) {
  KeyReader reader;
  EXPECT_EQ(kinds(reader.take("\x1b[A\x1b[B\x1bOA\x1b[5~\x1b[6~\x1b[H\x1b[F")),
            (Kinds{K::kUp, K::kDown, K::kUp, K::kPageUp, K::kPageDown, K::kHome, K::kEnd}));
  EXPECT_EQ(kinds(reader.take("\r\t\x7f")), (Kinds{K::kEnter, K::kTab, K::kBackspace}));
  EXPECT_EQ(kinds(reader.take("\x01\x02")), Kinds{}) << "other control keys mean nothing";
  EXPECT_EQ(kinds(reader.take("\x1b[1;5C")), Kinds{}) << "nor do unknown sequences, as a whole";
}

TEST(TopKeys, ASequenceInTwoPieces) {
  KeyReader reader;
  EXPECT_EQ(kinds(reader.take("\x1b")), Kinds{});
  EXPECT_TRUE(reader.waits());
  EXPECT_EQ(kinds(reader.take("[")), Kinds{});
  EXPECT_EQ(kinds(reader.take("Bq")), (Kinds{K::kDown, K::kCharacter}));
  EXPECT_FALSE(reader.waits());
  EXPECT_EQ(kinds(reader.take("\x1b")), Kinds{});
  EXPECT_EQ(kinds(reader.flush()), (Kinds{K::kEscape}));
  EXPECT_FALSE(reader.waits());
  EXPECT_EQ(kinds(reader.flush()), Kinds{});
}

TEST(TopKeys, EndlessSequence) {
  KeyReader reader;
  const auto keys = reader.take("\x1b[" + std::string(1000, '1'));
  EXPECT_FALSE(reader.waits());
  EXPECT_EQ(keys.front().kind, K::kEscape);
}

class TopView : public ::testing::Test {
 protected:
  bool press(std::string_view bytes) {
    KeyReader reader;
    auto keys = reader.take(bytes);
    for (const Key& key : reader.flush()) keys.push_back(key);
    bool goes_on = true;
    for (const Key& key : keys) goes_on = take_key(key, {{0, 1, 12}, 10}, view) && goes_on;
    return goes_on;
  }
  View view;
};

TEST_F(TopView, Sorting) {
  EXPECT_TRUE(press("m"));
  EXPECT_EQ(view.sort, SortBy::kMemory);
  press("r");
  EXPECT_TRUE(view.reverse);
  press(">");
  EXPECT_EQ(view.sort, SortBy::kEnergy);
  EXPECT_FALSE(view.reverse);
  press("<<");
  EXPECT_EQ(view.sort, SortBy::kShare);
  for (int i = 0; i < 20; ++i) press("<");
  EXPECT_EQ(view.sort, SortBy::kGpu);
  for (int i = 0; i < 20; ++i) press(">");
  EXPECT_EQ(view.sort, SortBy::kProcess);
  for (size_t i = 0; i < sort_columns().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(sort_columns()[i].by), i);
    press(std::string(1, sort_columns()[i].key));
    EXPECT_EQ(static_cast<size_t>(view.sort), i);
  }
}

TEST_F(TopView, Filter) {
  press("/trainqw");
  EXPECT_TRUE(view.typing);
  EXPECT_EQ(view.filter, "trainqw") << "letters are no commands meanwhile";
  press("\x7f\x7f\r");
  EXPECT_FALSE(view.typing);
  EXPECT_EQ(view.filter, "train");
  press("/\xc3\xbc");
  EXPECT_EQ(view.filter, "train\xc3\xbc");
  press("\x7f");
  EXPECT_EQ(view.filter, "train");
  press("\x1b");
  EXPECT_EQ(view.filter, "");
  EXPECT_FALSE(view.typing);
  press("/" + std::string(1000, 'x'));
  EXPECT_LE(view.filter.size(), 64u);
}

TEST_F(TopView, Gpus) {
  press("1");
  EXPECT_EQ(view.gpu, 1u);
  press("7");
  EXPECT_EQ(view.gpu, 1u) << "there is none";
  press("\t");
  EXPECT_EQ(view.gpu, 12u);
  press("\t");
  EXPECT_EQ(view.gpu, std::nullopt);
  press("\t");
  EXPECT_EQ(view.gpu, 0u);
  press("a");
  EXPECT_EQ(view.gpu, std::nullopt);
}

TEST_F(TopView, ScrollingGroupingHelpAndQuit) {
  press("\x1b[B\x1b[6~j");
  EXPECT_EQ(view.offset, 12u);
  press("\x1b[5~k\x1b[A");
  EXPECT_EQ(view.offset, 0u);
  press("\x1b[A");
  EXPECT_EQ(view.offset, 0u);
  press("\x1b[F\x1b[6~");
  EXPECT_GT(view.offset, 1000000u);
  press("g");
  EXPECT_TRUE(view.by_owner);
  EXPECT_EQ(view.offset, 0u);
  press("h");
  EXPECT_TRUE(view.help);
  EXPECT_TRUE(press("m"));
  EXPECT_FALSE(view.help);
  EXPECT_EQ(view.sort, SortBy::kWatts) << "any key goes back and does nothing else";
  EXPECT_FALSE(press("q"));
}

}  // namespace
}  // namespace gpuledger::app::top
