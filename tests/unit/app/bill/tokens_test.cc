// SPDX-License-Identifier: Apache-2.0
#include "app/bill/tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "app/bill/formats.h"
#include "app/bill/html.h"

namespace gpuledger::app {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr int64_t kSpanStart = 1'790'000'000;

// What servers counted in every step.
struct CountingServer {
  std::map<std::string, std::string> labels;
  double prompt = 0;
  double generated = 0;
};

class Tokens : public ::testing::Test {
 protected:
  void SetUp() override {
    query_.span = {sys_seconds(seconds(kSpanStart)), sys_seconds(seconds(kSpanStart + 9000))};
    statement_.prices = {"EUR", 0.36, {}, 1, 400.0};
    statement_.has_co2e = true;
  }

  BillAsk ask() {
    return [this](const std::string& query, sys_seconds at) -> Result<std::vector<BillSeries>> {
      asked_.push_back(query.substr(query.rfind('[')) + " " +
                       std::to_string(at.time_since_epoch().count() - kSpanStart));
      queries_.push_back(query);
      if (!failure_.empty()) return Error{Code::kTimeout, failure_};
      const bool prompt = query.find("llamacpp:prompt_tokens_total") != query.npos;
      std::vector<BillSeries> out;
      for (const CountingServer& one : servers_) {
        out.push_back({{one.labels.begin(), one.labels.end()}, {{0, prompt ? one.prompt : one.generated}}});
      }
      return out;
    };
  }
  // A line of so many joules, of which a tenth is uncertain.
  BillLine& line(const std::string& name, int64_t joules) {
    BillLine line;
    line.name = name;
    line.shared_millijoules = joules * 1000;
    line.standard_error_joules = static_cast<double>(joules) / 10;
    line.energy_cost = static_cast<double>(joules) / 3.6e6 * statement_.prices.per_kwh;
    line.co2e_grams = static_cast<double>(joules) / 3.6e6 * 400;
    statement_.lines.push_back(line);
    statement_.meter_millijoules += joules * 1000;
    return statement_.lines.back();
  }
  Status add(const std::vector<std::string>& by) { return add_tokens(ask(), query_, by, statement_); }
  static void expect_tokens(const BillLine& line, double prompt, double generated) {
    ASSERT_TRUE(line.tokens) << line.name;
    EXPECT_DOUBLE_EQ(line.tokens->prompt, prompt) << line.name;
    EXPECT_DOUBLE_EQ(line.tokens->generated, generated) << line.name;
  }
  std::string row(const std::string& text, const std::string& name) {
    const size_t at = text.find(name);
    return at == text.npos ? "no " + name : text.substr(at, text.find('\n', at) - at);
  }

  BillQuery query_;
  Statement statement_;
  std::vector<CountingServer> servers_;
  std::vector<std::string> asked_, queries_;
  std::string failure_;
};

TEST_F(Tokens, OfEveryStepAreAddedUp) {
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 100, 10}};
  line("chat", 990);
  ASSERT_TRUE(add({"namespace"}).ok());
  // 9000 s are two hours and a half.
  EXPECT_EQ(asked_, (std::vector<std::string>{"[3600s]))) 3600", "[3600s]))) 3600", "[3600s]))) 7200",
                                              "[3600s]))) 7200", "[1800s]))) 9000", "[1800s]))) 9000"}));
  expect_tokens(statement_.lines[0], 300, 30);
  EXPECT_DOUBLE_EQ(joules_per_token(statement_.lines[0]), 3);
  EXPECT_NEAR(per_million_tokens(statement_.lines[0], statement_.lines[0].cost()), 0.3, 1e-12);
}

TEST_F(Tokens, AreThoseOfTheMatchers) {
  query_.match = "cluster=\"east\"";
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 100, 10}};
  ASSERT_TRUE(add({"namespace"}).ok());
  for (const std::string& query : queries_)
    EXPECT_NE(query.find("{cluster=\"east\",namespace!=\"\",pod!=\"\"}["), query.npos) << query;
}

// A rate has no name: one of several names is refused if a server shows two of them with the same labels.
TEST_F(Tokens, OfEachNameAreAskedApart) {
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 100, 10}};
  line("chat", 990);
  ASSERT_TRUE(add({"namespace"}).ok());
  for (const std::string& query : queries_) {
    EXPECT_EQ(query.find("__name__"), query.npos) << query;
    EXPECT_NE(query.find("s]) or increase("), query.npos) << query;
  }
}

TEST_F(Tokens, BelongToTheLineOfTheirGroup) {
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}, {"cluster", "east"}, {"model_name", "big"}}, 100, 10},
              {{{"namespace", "chat"}, {"pod", "a"}, {"cluster", "east"}, {"model_name", "small"}}, 1, 0},
              {{{"namespace", "chat"}, {"pod", "b"}, {"cluster", "east"}}, 0, 0},
              {{{"namespace", "chat"}, {"pod", "b"}, {"cluster", "west"}}, 50, 5}};
  query_.step = seconds(9000);
  line("east / chat/a", 111);
  line("east / chat/b", 111);
  line("west / chat/b", 110);
  BillLine& nobody = line("idle", 7);
  nobody.kind = LineKind::kNobody;
  ASSERT_TRUE(add({"cluster", "pod"}).ok());
  expect_tokens(statement_.lines[0], 101, 10);
  EXPECT_FALSE(statement_.lines[1].tokens) << "of no tokens nothing can be said";
  expect_tokens(statement_.lines[2], 50, 5);
  EXPECT_FALSE(statement_.lines[3].tokens);
  EXPECT_DOUBLE_EQ(statement_.tokens()->all(), 166);
  EXPECT_EQ(statement_.remarks.size(), 1U) << "what is divided by what";
}

TEST_F(Tokens, OfPodsWithoutEnergyAreNamed) {
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 100, 10}, {{{"namespace", "cpu"}, {"pod", "b"}}, 100, 10}};
  line("chat", 990);
  ASSERT_TRUE(add({"namespace"}).ok());
  ASSERT_EQ(statement_.remarks.size(), 2U);
  EXPECT_NE(statement_.remarks[0].find("tokens of \"cpu\" are in no line"), std::string::npos) << statement_.remarks[0];
}

TEST_F(Tokens, OfPodsWithoutTheGroupAreNamed) {
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}, {"cluster", "east"}}, 100, 10},
              {{{"namespace", "lab"}, {"pod", "b"}}, 100, 10}};
  line("east", 990);
  ASSERT_TRUE(add({"cluster"}).ok());
  EXPECT_NE(statement_.remarks[0].find("tokens of \"pods of lab\" are in no line"), std::string::npos)
      << statement_.remarks[0];
}

// One pod must not stop the bill of all others.
TEST_F(Tokens, ThatAreNoNumberAreLeftOut) {
  for (const double wrong : {std::nan(""), -1.0, static_cast<double>(INFINITY), 1e17}) {
    statement_.lines.clear();
    statement_.remarks.clear();
    servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 100, 10}, {{{"namespace", "chat"}, {"pod", "b"}}, wrong, 20}};
    line("chat", 990);
    const Status status = add({"namespace"});
    ASSERT_TRUE(status.ok()) << status.error().message;
    expect_tokens(statement_.lines[0], 300, 90);
    ASSERT_EQ(statement_.remarks.size(), 2U) << wrong;
    EXPECT_NE(statement_.remarks[0].find("tokens of \"chat/b\" are too few"), std::string::npos)
        << statement_.remarks[0];
  }
  // Where there are no others, neither.
  statement_.lines.clear();
  statement_.remarks.clear();
  servers_ = {{{{"namespace", "chat"}, {"pod", "b"}}, INFINITY, 0}};
  line("chat", 990);
  ASSERT_TRUE(add({"namespace"}).ok());
  EXPECT_FALSE(statement_.lines[0].tokens);
  EXPECT_EQ(statement_.remarks.size(), 2U);
}

TEST_F(Tokens, ThatAreNotThereAreAnError) {
  line("chat", 990);
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 0, 0}};
  Status none = add({"namespace"});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kNotFound);
  failure_ = "no answer in time";
  none = add({"namespace"});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, failure_);
}

TEST_F(Tokens, AreKnownBySomeGroups) {
  EXPECT_TRUE(check_token_groups({"cluster", "namespace", "pod"}).ok());
  const Status team = check_token_groups({"namespace", "label:team"});
  ASSERT_FALSE(team.ok());
  EXPECT_EQ(team.error().message,
            "--per=token: tokens are known by namespace, pod and cluster, not by \"label:team\"; change --by");
}

TEST_F(Tokens, AreShownWhereTheyAre) {
  for (const auto& format : bill_formats()) {
    EXPECT_EQ(std::string(format.write(statement_)).find("oken"), std::string::npos) << format.name;
  }
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 3'000'000, 1'000'000}};
  query_.step = seconds(9000);
  line("chat", 7'200'000);
  line("train", 3'600'000);
  ASSERT_TRUE(add({"namespace"}).ok());
  const std::string table = bill_table(statement_);
  EXPECT_NE(table.find("M tokens  generated M  J/token  ± J/token  EUR/M tokens  CO2e g/M tokens\n"), table.npos)
      << table;
  EXPECT_TRUE(row(table, "chat ").ends_with("4.000        1.000   1.8000     0.1800        0.1800            200.0"))
      << table;
  EXPECT_EQ(row(table, "train ").find("nan"), std::string::npos) << table;
  EXPECT_TRUE(row(table, "the meter").ends_with("4.000        1.000")) << table;
  const std::string csv = bill_csv(statement_);
  EXPECT_TRUE(row(csv, ",owner,chat").ends_with(",,3000000,1000000,1.800000000,0.180000000,0.180000000,200.000000"))
      << csv;
  EXPECT_TRUE(row(csv, ",owner,train").ends_with(",,,,,,,")) << csv;
  EXPECT_TRUE(row(csv, ",meter,").ends_with(",3000000,1000000,,,,")) << csv;
  // A table of its own, of the lines that have some.
  const std::string html = bill_html(statement_);
  const size_t tokens = html.find("<h2>Tokens</h2>");
  ASSERT_NE(tokens, html.npos) << html;
  const std::string own = html.substr(tokens, html.find("</table>", tokens) - tokens);
  EXPECT_NE(own.find("<bdi>chat</bdi></th><td>4.000</td><td>1.000</td><td>1.8000 <span "
                     "class=\"error\">\u00b1\u00a00.1800</span>"
                     "</td><td>0.1800</td><td>200.0</td></tr>"),
            own.npos)
      << own;
  EXPECT_EQ(own.find("train"), own.npos);
}

TEST_F(Tokens, CostWhatThePriceListSays) {
  statement_.prices.per_kwh = 0;
  statement_.prices.rows.emplace_back().per_kwh = 0.36;
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 3'000'000, 1'000'000}};
  query_.step = seconds(9000);
  line("chat", 7'200'000).energy_cost = 0.72;
  ASSERT_TRUE(add({"namespace"}).ok());
  const std::string table = bill_table(statement_);
  EXPECT_NE(table.find("± J/token  EUR/M tokens  CO2e g/M tokens\n"), table.npos) << table;
  EXPECT_TRUE(row(table, "chat ").ends_with("0.1800            200.0")) << table;
}

TEST_F(Tokens, AddUpAsTheyAreShown) {
  for (const char* pod : {"a", "b", "c"}) {
    servers_.push_back({{{"namespace", pod}, {"pod", pod}}, 200.4, 200.4});
    line(pod, 990);
  }
  query_.step = seconds(9000);
  ASSERT_TRUE(add({"namespace"}).ok());
  const std::string table = bill_table(statement_), csv = bill_csv(statement_);
  // The tokens of a row, in thousands, of which so many cells are behind.
  const auto thousands = [&](const std::string& name, size_t behind) {
    std::istringstream words(row(table.substr(table.find("\n" + name) + 1), name));
    const std::vector<std::string> cells{std::istream_iterator<std::string>(words), {}};
    return std::llround(std::stod(cells.at(cells.size() - behind)) * 1000);
  };
  EXPECT_EQ(thousands("a ", 6) + thousands("b ", 6) + thousands("c ", 6), thousands("the meter", 2)) << table;
  EXPECT_EQ(thousands("a ", 5) + thousands("b ", 5) + thousands("c ", 5), thousands("the meter", 1)) << table;
  EXPECT_NE(row(csv, ",owner,c").find(",200,200,"), csv.npos) << csv;
  EXPECT_TRUE(row(csv, ",meter,").ends_with(",600,600,,,,")) << csv;
  const std::string html = bill_html(statement_);
  const std::string cell = "<td>0.001</td><td>0.001</td>";
  EXPECT_NE(html.find(cell), html.rfind(cell)) << "a line's and the sum's: " << html;
}

// A row of each kind has as many cells as the header.
TEST_F(Tokens, KeepTheCsvARectangle) {
  servers_ = {{{{"namespace", "chat"}, {"pod", "a"}}, 3, 1}};
  line("chat", 7);
  line("train", 3);
  ASSERT_TRUE(add({"namespace"}).ok());
  std::set<size_t> widths;
  const std::string csv = bill_csv(statement_);
  for (size_t at = 0; at < csv.size(); at = csv.find('\n', at) + 1) {
    const std::string row = csv.substr(at, csv.find('\n', at) - at);
    widths.insert(static_cast<size_t>(std::count(row.begin(), row.end(), ',')));
  }
  EXPECT_EQ(widths.size(), 1U) << csv;
}

}  // namespace
}  // namespace gpuledger::app
