// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocation_server.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/eventually.h"
#include "support/manual_clock.h"
#include "unit/app/bill/sample_statement.h"
#include "unit/http/test_client.h"

namespace gpuledger::app {
namespace {

using http::fetch;
using nlohmann::json;
using testing::HasSubstr;

class AllocationApi : public testing::Test {
 protected:
  AllocationApi() {
    options_.listen_addresses = {"127.0.0.1:0"};
    options_.limits.answer_timeout = std::chrono::hours(1);
  }
  ~AllocationApi() override { go_on(); }

  void start() {
    auto server = AllocationServer::start(
        options_,
        [state = state_](const BillSpan& span, const AllocationQuestion& question,
                         const std::shared_ptr<const net::Interrupt>& given_up) -> Result<Statement> {
          const std::string& by = question.by;
          ++(by == kAfterwards ? state->computed_afterwards : state->computed);
          state->note(by);
          if (state->slow) state->gate.wait();
          if (by == "slurm_account" || by == "namespace,slurm_account") return many_queries(*state, *given_up);
          if (by == "user") return Error{Code::kNotFound, "nothing has user"};
          if (by == "cluster") return Error{Code::kMalformed, "http://prometheus: the answer has no time"};
          if (by == "node") return Error{Code::kUnavailable, "http://prometheus: no answer"};
          if (by == "node,pod") return Error{Code::kNotSupported, "http://prometheus: answers 422: too many series"};
          Statement statement = question.spread == Spread::kKeep ? sample_statement() : spread_statement();
          statement.span = span;
          statement.by = by;
          return statement;
        },
        clock_, limits_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    address_ = server_->addresses().at(0);
  }
  void go_on() {
    if (!state_->opened.exchange(true)) state_->open.set_value();
  }
  bool computed(int number) const {
    return eventually([&] { return state_->computed == number; });
  }
  // Returns when a worker is free. Asks again: an answer that takes too long is kept for the next time.
  bool answers_afterwards() const {
    const std::string target = std::string("/allocation?window=lastmonth&aggregate=") + kAfterwards;
    return eventually([&] { return fetch(address_, target).status == 200; });
  }
  static std::string request(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }

  // Shared with bills that outlive the server.
  struct State {
    void note(const std::string& by) {
      const std::lock_guard lock(mutex);
      in_turn.push_back(by);
    }
    std::mutex mutex;
    std::vector<std::string> in_turn;  // what was computed
    std::atomic<int> computed = 0, computed_afterwards = 0, given_up = 0;
    std::atomic<bool> slow = false, opened = false;
    std::promise<void> open;
    std::shared_future<void> gate = open.get_future().share();
  };
  // As a long span: it ends before the test only if it sees that nobody waits.
  static Result<Statement> many_queries(State& state, const net::Interrupt& given_up) {
    while (!state.opened) {
      if (given_up.wait_for(std::chrono::milliseconds(2))) {
        ++state.given_up;
        return Error{Code::kTimeout, "given up"};
      }
    }
    return sample_statement();
  }
  using Client = std::unique_ptr<http::TestClient>;
  // Returns when the server has the question: it answers a later one.
  Client ask(const std::string& target, const std::string& from = "127.0.0.1") {
    auto client = std::make_unique<http::TestClient>(address_, std::nullopt, from);
    EXPECT_TRUE(client->send(request(target)));
    EXPECT_EQ(fetch(address_, "/healthz").status, 200);
    return client;
  }

  static constexpr const char* kAfterwards = "namespace,pod";
  std::shared_ptr<State> state_ = std::make_shared<State>();
  http::ServerOptions options_;
  AllocationLimits limits_;
  ManualClock clock_;
  std::unique_ptr<AllocationServer> server_;
  std::string address_;
};

TEST_F(AllocationApi, AnswersBothPaths) {
  start();
  for (const char* path : {"/allocation", "/allocation/compute"}) {
    const auto answer = fetch(address_, std::string(path) + "?window=lastmonth&aggregate=namespace&includeIdle=true");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.at("content-type"), "application/json");
    const json data = json::parse(answer.body).at("data");
    ASSERT_EQ(data.size(), 1u);
    EXPECT_TRUE(data.at(0).contains("__idle__"));
  }
  EXPECT_EQ(state_->computed, 1) << "the second is the kept answer";
  const json days = json::parse(fetch(address_, "/allocation?window=lastweek&step=1d").body).at("data");
  ASSERT_EQ(days.size(), 7u);
  EXPECT_EQ(days.at(1).at("vision").at("start"), days.at(0).at("vision").at("end"));
  EXPECT_EQ(fetch(address_, "/healthz").body, "ok\n");
}

TEST_F(AllocationApi, AnswersSummaries) {
  start();
  const std::string query = "?window=lastmonth&aggregate=namespace&includeIdle=true";
  EXPECT_TRUE(json::parse(fetch(address_, "/allocation" + query).body).at("data").is_array());
  for (const char* path : {"/allocation/summary", "/allocation/compute/summary"}) {
    const json data = json::parse(fetch(address_, path + query).body).at("data");
    EXPECT_TRUE(data.at("sets").at(0).at("allocations").contains("__idle__")) << path;
  }
  EXPECT_EQ(state_->computed, 2) << "one answer for both names";
  EXPECT_EQ(json::parse(fetch(address_, "/allocation/autocomplete?window=lastmonth&field=namespace&search=spe").body),
            json({{"code", 200}, {"data", {{"data", {"speech"}}}}}));
}

TEST_F(AllocationApi, ErrorsHaveACodeAndAMessage) {
  start();
  const auto status = [&](const std::string& target) {
    const auto answer = fetch(address_, target);
    EXPECT_EQ(json::parse(answer.body).at("code"), answer.status);
    EXPECT_FALSE(json::parse(answer.body).at("message").get<std::string>().empty());
    return answer.status;
  };
  EXPECT_EQ(status("/allocation"), 400);
  EXPECT_EQ(status("/allocation?window=soon"), 400);
  EXPECT_EQ(status("/allocation?window=7d&aggregate=user"), 400);
  EXPECT_EQ(status("/allocation?window=7d&aggregate=node"), 502);
  EXPECT_EQ(status("/allocation?window=7d&aggregate=node,pod"), 502);
  EXPECT_EQ(status("/allocation?window=7d&aggregate=cluster"), 502) << "who asks cannot mend it";
  EXPECT_EQ(status("/assets?window=7d"), 404);
  EXPECT_THAT(fetch(address_, "/allocation?window=7d&aggregate=user").body, HasSubstr("nothing has user"));
  http::TestClient client(address_);
  ASSERT_TRUE(client.send("POST /allocation?window=7d HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(client.read().status, 405);
}

TEST_F(AllocationApi, TheSameQuestionAtOnceIsComputedOnce) {
  state_->slow = true;
  start();
  std::vector<std::unique_ptr<http::TestClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<http::TestClient>(address_));
    ASSERT_TRUE(clients.back()->send(request("/allocation?window=lastmonth")));
  }
  ASSERT_TRUE(computed(1));
  EXPECT_EQ(fetch(address_, "/healthz").status, 200) << "while a bill is computed";
  go_on();
  for (const auto& client : clients) EXPECT_EQ(client->read().status, 200);
  EXPECT_EQ(state_->computed, 1);
}

TEST_F(AllocationApi, AQuestionIsDroppedWhenItsAskersLeave) {
  limits_.workers = 1;
  start();
  std::vector<Client> leave;
  for (int i = 0; i < 3; ++i) leave.push_back(ask("/allocation?window=lastmonth&aggregate=slurm_account"));
  ASSERT_TRUE(computed(1));
  const Client stays = ask("/allocation?window=lastweek&aggregate=namespace");
  leave.clear();
  EXPECT_EQ(stays->read().status, 200) << "the worker is free again";
  EXPECT_EQ(state_->given_up, 1);
  EXPECT_EQ(state_->computed, 2);
}

TEST_F(AllocationApi, AQuestionIsDroppedWhileItWaits) {
  state_->slow = true;
  limits_.workers = 1;
  limits_.waiting = 4;
  start();
  std::vector<Client> stay, leave;
  stay.push_back(ask("/allocation?window=lastmonth"));
  ASSERT_TRUE(computed(1));
  for (int hours = 1; hours <= 4; ++hours) leave.push_back(ask(fmt::format("/allocation?window={}h", hours)));
  leave.clear();
  for (int days = 2; days <= 5; ++days) {  // today has just begun
    ASSERT_TRUE(eventually([&] {
      stay.push_back(ask(fmt::format("/allocation?window={}d", days)));
      if (!stay.back()->has_bytes()) return true;
      EXPECT_EQ(stay.back()->read().status, 503);
      stay.pop_back();
      return false;
    }));
  }
  go_on();
  for (const Client& client : stay) EXPECT_EQ(client->read().status, 200);
  EXPECT_EQ(state_->computed, 5) << "nobody waits for the others";
}

TEST_F(AllocationApi, AQuestionGoesOnForWhoStays) {
  limits_.workers = 1;
  start();
  const std::string target = "/allocation?window=lastmonth&aggregate=slurm_account";
  Client leaves = ask(target);
  ASSERT_TRUE(computed(1));
  const Client stays = ask(target);
  Client other = ask("/allocation?window=lastmonth&aggregate=namespace,slurm_account");
  leaves.reset();
  other.reset();
  go_on();
  EXPECT_EQ(stays->read().status, 200);
  EXPECT_EQ(state_->given_up, 0);
}

TEST_F(AllocationApi, AddressesTakeTurns) {
  state_->slow = true;
  limits_.workers = 1;
  limits_.waiting = 4;
  start();
  std::vector<Client> many;
  const auto ask_much = [&](const std::string& by) {
    many.push_back(ask("/allocation?window=lastmonth&aggregate=" + by));
  };
  ask_much("pod");
  ASSERT_TRUE(computed(1));
  for (const char* by : {"label:a", "label:b", "label:c", "label:d"}) ask_much(by);
  EXPECT_EQ(fetch(address_, "/allocation?window=lastmonth&aggregate=label:e").status, 503) << "four wait";
  const Client few = ask("/allocation?window=lastmonth&aggregate=label:few", "127.0.0.2");
  EXPECT_EQ(many.back()->read().status, 503) << "its place is another address's";
  many.pop_back();
  const Client same = ask("/allocation?window=lastmonth&aggregate=label:c", "127.0.0.3");
  go_on();
  EXPECT_EQ(few->read().status, 200);
  EXPECT_EQ(same->read().status, 200);
  for (const Client& client : many) EXPECT_EQ(client->read().status, 200);
  EXPECT_THAT(state_->in_turn, testing::ElementsAre("pod", "label:a", "label:few", "label:c", "label:b"));
}

TEST_F(AllocationApi, NoAddressTakesEveryWorker) {
  start();
  std::vector<Client> many;
  for (int days = 2; days < 9; ++days)
    many.push_back(ask(fmt::format("/allocation?window={}d&aggregate=slurm_account", days)));
  ASSERT_TRUE(computed(2));
  EXPECT_EQ(http::TestClient(address_, std::nullopt, "127.0.0.2").get("/allocation?window=lastmonth").status, 200);
  EXPECT_EQ(state_->computed, 3);
}

TEST_F(AllocationApi, TooManyQuestionsAreRefused) {
  state_->slow = true;
  limits_.workers = 1;
  limits_.waiting = 1;
  start();
  const Client first = ask("/allocation?window=lastmonth");
  ASSERT_TRUE(computed(1));
  const Client second = ask("/allocation?window=yesterday");
  const auto busy = fetch(address_, "/allocation?window=today");
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.headers.at("retry-after"), "5");
}

TEST_F(AllocationApi, TooSlowQuestionsAreRefused) {
  state_->slow = true;
  limits_.workers = 1;
  options_.limits.answer_timeout = std::chrono::milliseconds(300);
  start();
  http::TestClient first(address_), second(address_);
  ASSERT_TRUE(first.send(request("/allocation?window=lastmonth&step=1d")));
  ASSERT_TRUE(computed(1));
  ASSERT_TRUE(second.send(request("/allocation?window=yesterday")));
  EXPECT_EQ(second.read().status, 504);
  EXPECT_EQ(first.read().status, 504);
  go_on();
  EXPECT_TRUE(answers_afterwards());
  EXPECT_EQ(state_->computed, 1) << "nobody waits for the other days, nor for the second question";
}

TEST_F(AllocationApi, ALongSpanIsGivenUpToo) {
  limits_.workers = 1;
  options_.limits.answer_timeout = std::chrono::milliseconds(300);
  start();
  EXPECT_EQ(fetch(address_, "/allocation?window=3650d&aggregate=slurm_account").status, 504);
  EXPECT_TRUE(answers_afterwards()) << "the only worker is free again";
}

TEST_F(AllocationApi, NotEverybodyCanWaitForOneAnswer) {
  state_->slow = true;
  limits_.waiting_for_one = 1;
  start();
  http::TestClient first(address_);
  ASSERT_TRUE(first.send(request("/allocation?window=lastmonth")));
  ASSERT_TRUE(computed(1));
  const auto busy = fetch(address_, "/allocation?window=lastmonth");
  EXPECT_EQ(busy.status, 503);
  EXPECT_EQ(busy.headers.count("retry-after"), 1u);
  go_on();
  EXPECT_EQ(first.read().status, 200);
}

TEST_F(AllocationApi, AnAnswerHasALimit) {
  limits_.most_lines = 3 * sample_statement().lines.size();
  start();
  EXPECT_EQ(fetch(address_, "/allocation?window=lastweek&step=3d").status, 200);
  const auto refused = fetch(address_, "/allocation?window=lastweek&step=2d");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("more than 18 allocations"));
}

TEST_F(AllocationApi, StopsWhileABillIsComputed) {
  state_->slow = true;
  start();
  http::TestClient client(address_);
  ASSERT_TRUE(client.send(request("/allocation?window=lastmonth")));
  ASSERT_TRUE(computed(1));
  server_.reset();
  EXPECT_TRUE(client.closed());
}

TEST_F(AllocationApi, KeepsFewAnswersAndNotForLong) {
  limits_.kept_answers = 1;
  start();
  const auto ask = [&](const char* window) {
    return fetch(address_, std::string("/allocation?window=") + window).status;
  };
  EXPECT_EQ(ask("lastmonth"), 200);
  EXPECT_EQ(ask("yesterday"), 200);
  EXPECT_EQ(ask("lastmonth"), 200);
  EXPECT_EQ(state_->computed, 3);
  clock_.advance(limits_.keep_answers - std::chrono::seconds(1));
  EXPECT_EQ(ask("lastmonth"), 200);
  EXPECT_EQ(state_->computed, 3);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(ask("lastmonth"), 200);
  EXPECT_EQ(state_->computed, 4);
}

TEST_F(AllocationApi, AWrongAddressIsAnError) {
  options_.listen_addresses = {"nowhere"};
  const auto server = AllocationServer::start(options_, {}, clock_);
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace gpuledger::app
