// SPDX-License-Identifier: Apache-2.0
#include "unit/http/bcrypt_hash.h"
#include "unit/http/certificates.h"
#include "unit/http/server_fixture.h"

namespace gpuledger::http {
namespace {

// A server whose answers the test gives.
class ServerAnswer : public ServerTest {
 protected:
  using Done = std::function<void(Reply)>;

  ServerAnswer() {
    options_.answerer = [this](Question question, Done done) {
      if (question.target == "/quick") {
        done(text_reply(200, question.method));
        return Forget();
      }
      std::lock_guard lock(mutex_);
      asked_.push_back(std::move(question.target));
      peers_.push_back(std::move(question.peer));
      waiting_.push_back(std::move(done));
      return Forget([this] { ++forgotten_; });
    };
  }

  bool asked(size_t number) {
    return eventually([&] {
      std::lock_guard lock(mutex_);
      return asked_.size() == number;
    });
  }
  bool forgotten(int number) {
    return eventually([&] { return forgotten_ == number; });
  }
  Done waiting(size_t index) {
    std::lock_guard lock(mutex_);
    return waiting_.at(index);
  }
  static std::string request(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  }

  std::mutex mutex_;
  std::vector<std::string> asked_, peers_;
  std::atomic<int> forgotten_ = 0;
  std::vector<Done> waiting_;
};

TEST_F(ServerAnswer, AnswersAtOnceOrLaterAndHoldsNobodyUp) {
  start_empty();
  EXPECT_EQ(fetch(address(), "/quick").body, "GET\n");
  TestClient slow(address());
  ASSERT_TRUE(slow.send(request("/slow?a=b")));
  ASSERT_TRUE(asked(1));
  EXPECT_EQ(asked_.front(), "/slow?a=b");
  EXPECT_EQ(fetch(address(), "/quick").status, 200) << "while another waits";
  waiting(0)(text_reply(200, "later"));
  EXPECT_EQ(slow.read().body, "later\n");
  EXPECT_EQ(slow.get("/quick").status, 200) << "the connection goes on";
}

TEST_F(ServerAnswer, GivesUpAndNeverSendsALateAnswerToTheNextQuestion) {
  options_.limits.answer_timeout = milliseconds(50);
  start_empty();
  TestClient client(address());
  EXPECT_EQ(client.get("/first").status, 504);
  EXPECT_EQ(forgotten_, 1);
  ASSERT_TRUE(client.send(request("/quick")));
  waiting(0)(text_reply(200, "late"));
  EXPECT_EQ(client.read().body, "GET\n");
  waiting(0)(text_reply(200, "twice"));
  EXPECT_EQ(client.get("/quick").body, "GET\n");
}

TEST_F(ServerAnswer, ForgetsTheQuestionOfAClientThatLeft) {
  start_empty();
  auto leaves = std::make_unique<TestClient>(address());
  TestClient stays(address(), std::nullopt, "127.0.0.2");
  ASSERT_TRUE(leaves->send(request("/a") + request("/pipelined")));
  ASSERT_TRUE(asked(1));
  ASSERT_TRUE(stays.send(request("/b")));
  ASSERT_TRUE(asked(2));
  EXPECT_NE(peers_.at(0), peers_.at(1));
  leaves.reset();
  ASSERT_TRUE(forgotten(1));
  waiting(1)(text_reply(200, "answered"));
  EXPECT_EQ(stays.read().body, "answered\n");
  ASSERT_TRUE(stays.send(request("/c")));
  ASSERT_TRUE(asked(3));
  EXPECT_EQ(asked_.back(), "/c") << "the pipelined question has nobody";
  EXPECT_EQ(forgotten_, 1);
  server_->stop();
  EXPECT_EQ(forgotten_, 2);
}

TEST_F(ServerAnswer, ForgetsTheQuestionOfATlsClientThatLeft) {
  const Identity server = make_certificate("server", make_authority("test authority"));
  options_.web_config_file =
      directory_.write("web.yml", "tls_server_config:\n  cert_file: " + directory_.write("cert.pem", server.cert) +
                                      "\n  key_file: " + directory_.write("key.pem", server.key) + "\n");
  start_empty();
  {
    TestClient leaves(address(), ClientTls());
    ASSERT_TRUE(leaves.send(request("/a")));
    ASSERT_TRUE(asked(1));
  }
  EXPECT_TRUE(forgotten(1));
}

TEST_F(ServerAnswer, IsHarmlessAfterTheClientOrTheServerIsGone) {
  start_empty();
  {
    TestClient gone(address());
    ASSERT_TRUE(gone.send(request("/a")));
    ASSERT_TRUE(asked(1));
  }
  waiting(0)(text_reply(200, "to nobody"));
  EXPECT_EQ(fetch(address(), "/quick").status, 200);
  TestClient left(address());
  ASSERT_TRUE(left.send(request("/b")));
  ASSERT_TRUE(asked(2));
  server_->stop();
  waiting(1)(text_reply(200, "stopped"));
  server_.reset();
  waiting(1)(text_reply(200, "destroyed"));
}

TEST_F(ServerAnswer, AsksForThePasswordFirst) {
  options_.limits.refusal_delay = milliseconds(20);
  options_.web_config_file = directory_.write("web.yml", "basic_auth_users:\n  alice: " + bcrypt_hash("secret") + "\n");
  start_empty();
  EXPECT_EQ(fetch(address(), "/quick").status, 401);
  EXPECT_EQ(fetch(address(), "/quick", "Authorization: Basic YWxpY2U6c2VjcmV0\r\n").status, 200);
}

}  // namespace
}  // namespace gpuledger::http
