// SPDX-License-Identifier: Apache-2.0
#include "app/bill/open_questions.h"

#include <gtest/gtest.h>

namespace gpuledger::app {
namespace {

class OpenQuestionsTest : public testing::Test {
 protected:
  void ask(const std::string& by, const std::string& peer) {
    AllocationQuestion question;
    question.by = by;
    EXPECT_TRUE(questions_.ask(std::move(question), peer, [](http::Reply) {}).question);
  }
  std::string take() {
    const OpenQuestionPtr next = questions_.take();
    return next ? next->question.by : "none";
  }

  OpenQuestions questions_{{32, 256, 2}};
};

TEST_F(OpenQuestionsTest, WhoHasItsWorkersTakesNoQuestionOfAnotherIntoItsLine) {
  ask("b1", "busy");
  ask("b2", "busy");
  EXPECT_EQ(take(), "b1");
  EXPECT_EQ(take(), "b2");
  ask("a1", "other");
  ask("a2", "other");
  ask("a2", "busy");
  EXPECT_EQ(take(), "a1");
  EXPECT_EQ(take(), "a2");
}

TEST_F(OpenQuestionsTest, WhoHasNoneYetDoesNotWaitForAnothersWorkers) {
  ask("b1", "busy");
  ask("b2", "busy");
  EXPECT_EQ(take(), "b1");
  EXPECT_EQ(take(), "b2");
  ask("b3", "busy");
  EXPECT_EQ(take(), "none");
  ask("b3", "other");
  EXPECT_EQ(take(), "b3");
}

}  // namespace
}  // namespace gpuledger::app
