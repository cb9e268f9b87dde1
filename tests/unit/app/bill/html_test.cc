// SPDX-License-Identifier: Apache-2.0
#include "app/bill/html.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "unit/app/bill/sample_statement.h"

namespace gpuledger::app {
namespace {

using testing::HasSubstr;
using testing::Not;

// To look at: GPU_LEDGER_BILL_PAGES names a folder.
void keep(const std::string& name, const std::string& page) {
  if (const char* folder = std::getenv("GPU_LEDGER_BILL_PAGES"))
    std::ofstream(std::string(folder) + "/" + name) << page;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(BillHtml, ShowsLinesMeterChartAndRemarks) {
  const std::string page = bill_html(sample_statement());
  keep("small.html", page);
  EXPECT_THAT(page, HasSubstr("<title>GPU bill of Example site, 2026-10-01 to 2026-11-01</title>"));
  EXPECT_THAT(page, HasSubstr("<tr class=\"owner\"><th scope=\"row\"><bdi>vision</bdi></th><td>412.700</td>"
                              "<td>114.250 <span class=\"error\">\u00b1\u00a04.570</span></td><td>526.950</td>"));
  EXPECT_THAT(page, HasSubstr("<bdi>nobody: idle</bdi>"));
  EXPECT_THAT(page, HasSubstr("The meter"));
  EXPECT_LT(page.rfind("nobody: exporter_down</bdi>"), page.find("<tfoot>")) << "the meter is the last line";
  EXPECT_THAT(page, HasSubstr("5\u202f580.00")) << "thousands apart";
  EXPECT_THAT(page, HasSubstr("<svg viewBox"));
  EXPECT_THAT(page, HasSubstr("aria-labelledby=\"chart-title chart-text\""));
  for (const char* kind : {"alone", "shared", "nobody"})
    EXPECT_THAT(page, HasSubstr(fmt::format("<rect class=\"{}\"", kind)));
  EXPECT_THAT(page, HasSubstr("one standard error"));
  EXPECT_THAT(page, HasSubstr("Made by gpu-ledger 0.2.0 at 2026-11-02 06:30 UTC from http://prometheus:9090."));
  EXPECT_THAT(page, Not(HasSubstr("INCOMPLETE")));
  EXPECT_THAT(page, Not(HasSubstr("Part of nobody")));
}

TEST(BillHtml, NeedsNothingFromOutside) {
  const std::string page = bill_html(sample_statement());
  for (const char* word : {"src=", "href=", "@import", "<script", "<link", "url(h"})
    EXPECT_THAT(page, Not(HasSubstr(word))) << word;
  EXPECT_THAT(page, HasSubstr("@media print"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST(BillHtml, NamesOfTenantsStayText) {
  Statement statement = sample_statement();
  const std::string evil = "<script>alert(1)</script>\"'&\n\u202e";
  statement.lines[0].name = evil;
  statement.site = evil;
  statement.by = evil;
  statement.server = evil;
  statement.generated_by = evil;
  statement.prices.currency = evil;
  statement.prices.per_gpu_hour = {{evil, 2.0}};
  statement.remarks = {evil};
  statement.gaps.push_back({evil, {at(2026, 10, 2), at(2026, 10, 3)}, evil});
  const std::string page = bill_html(statement);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("\u202e")));
  EXPECT_THAT(page,
              HasSubstr("<bdi>&quot;&lt;script&gt;alert(1)&lt;/script&gt;\\&quot;&#39;&amp;\\n\\u202e&quot;</bdi>"));
  statement.lines[0].name = "plain \"quoted\" & 'so'";
  EXPECT_THAT(bill_html(statement), HasSubstr("<bdi>plain &quot;quoted&quot; &amp; &#39;so&#39;</bdi>"));
}

TEST(BillHtml, SaysLoudlyWhatIsMissing) {
  Statement statement = sample_statement();
  statement.gaps.assign(42, {"node7", {at(2026, 10, 2, 3, 15), at(2026, 10, 2, 9)}, "no sample of 21600 s"});
  const std::string page = bill_html(statement);
  keep("gaps.html", page);
  EXPECT_THAT(page, HasSubstr("<strong>INCOMPLETE</strong>"));
  EXPECT_THAT(page, HasSubstr("<bdi>node7</bdi>: 2026-10-02 03:15 to 2026-10-02 09:00 UTC: no sample of 21600 s"));
  EXPECT_EQ(count(page, "<bdi>node7</bdi>"), 40u);
  EXPECT_THAT(page, HasSubstr("and 2 more"));
  statement.gaps.clear();
  ++statement.meter_millijoules;
  EXPECT_THAT(bill_html(statement), HasSubstr("The lines add up to "));
}

TEST(BillHtml, ShowsWhatIsSpreadAndLeavesOutWhatIsAbsent) {
  const std::string spread = bill_html(spread_statement());
  keep("spread.html", spread);
  EXPECT_THAT(spread, HasSubstr("Part of nobody"));
  EXPECT_THAT(spread, HasSubstr("<td>\u2212166.861</td>")) << "idle gives away what it has";
  Statement bare = sample_statement();
  bare.has_co2e = false;
  bare.prices.per_kwh = 0;
  bare.prices.per_gpu_hour.clear();
  const std::string page = bill_html(bare);
  EXPECT_THAT(page, Not(HasSubstr("<th scope=\"col\">CO")));
  EXPECT_THAT(page, Not(HasSubstr("<th scope=\"col\">Cost")));
  EXPECT_THAT(page, HasSubstr("No price was given"));
}

// The numbers of the table: a row for each line, the last one is the meter's. What is absent is 0.
std::vector<std::vector<double>> numbers(const std::string& page) {
  std::vector<std::vector<double>> rows;
  for (size_t row = page.find("<tr", page.find("<tbody>")); row != std::string::npos; row = page.find("<tr", row + 1)) {
    const size_t end = page.find("</tr>", row);
    rows.emplace_back();
    for (size_t cell = page.find("<td>", row); cell < end; cell = page.find("<td>", cell + 1)) {
      std::string text = page.substr(cell + 4, page.find('<', cell + 4) - cell - 4);
      for (const std::string& space : {std::string("\u202f"), std::string("\u2013")}) {
        for (size_t at = text.find(space); at != std::string::npos; at = text.find(space)) text.erase(at, space.size());
      }
      if (text.starts_with("\u2212")) text.replace(0, std::string("\u2212").size(), "-");
      rows.back().push_back(std::atof(text.c_str()));
    }
  }
  return rows;
}

void expect_columns_add_up(const Statement& statement) {
  const auto rows = numbers(bill_html(statement));
  ASSERT_EQ(rows.size(), statement.lines.size() + 1);
  for (size_t column = 0; column < rows[0].size(); ++column) {
    double sum = 0;
    for (size_t row = 0; row + 1 < rows.size(); ++row) sum += rows[row][column];
    EXPECT_NEAR(sum, rows.back()[column], 1e-7) << "column " << column;
  }
  for (const auto& row : rows) EXPECT_NEAR(row[0] + row[1], row[2], 1e-7) << "measured and estimated";
}

TEST(BillHtml, ColumnsAddUpAsTheyAreShown) {
  for (const int64_t scale : {int64_t{1'000'000}, int64_t{1'000'000'000'000}}) {  // 0.001 and 1000 kWh
    Statement statement = sample_statement();
    for (size_t i = 0; i < statement.lines.size(); ++i) {
      BillLine& line = statement.lines[i];
      line.alone_millijoules = scale / 7 + static_cast<int64_t>(i);
      line.shared_millijoules = line.kind == LineKind::kNobody ? 0 : scale / 9;
      line.gpu_hours = 1.0 / 3;
    }
    price(statement);
    statement.meter_millijoules = statement.sum_millijoules();
    expect_columns_add_up(statement);
    statement.spread = Spread::kByUse;
    for (BillLine& line : statement.lines) {
      line.spread_millijoules = line.kind == LineKind::kNobody ? -line.own_millijoules() : 0;
      statement.lines[0].spread_millijoules -= line.spread_millijoules / 3;
      statement.lines[1].spread_millijoules -= line.spread_millijoules - line.spread_millijoules / 3;
    }
    price(statement);
    ASSERT_EQ(statement.sum_millijoules(), statement.meter_millijoules);
    expect_columns_add_up(statement);
  }
}

TEST(BillHtml, ALargeBillShowsWattHours) {
  Statement statement = sample_statement();
  statement.lines = {bill_line(LineKind::kOwner, "a", 3'600'003'600'000, 0)};
  statement.meter_millijoules = statement.sum_millijoules();
  EXPECT_THAT(bill_html(statement), HasSubstr("<td>1\u202f000.001</td>"));
}

TEST(BillHtml, ALongBillHasAllLinesAndAShortChart) {
  Statement statement = sample_statement();
  std::vector<BillLine> owners;
  for (int i = 0; i < 200; ++i) {
    owners.push_back(bill_line(LineKind::kOwner, fmt::format("team-with-a-rather-long-name-{:03}", i),
                               9'000'000'000'000 / (i + 1), i % 3 == 0 ? 2'000'000'000'000 / (i + 2) : 0));
    owners.back().gpu_hours = 1000.0 / (i + 1);
  }
  statement.lines.insert(statement.lines.begin(), owners.begin(), owners.end());
  price(statement);
  statement.meter_millijoules = statement.sum_millijoules();
  const std::string page = bill_html(statement);
  keep("long.html", page);
  EXPECT_EQ(count(page, "<tr class="), statement.lines.size());
  EXPECT_EQ(count(page, "<g><title>"), 22u) << "19 owners, the others, and two lines of nobody";
  EXPECT_THAT(page, HasSubstr("185 others"));
}

TEST(BillHtml, ALabelOfTheChartIsCutWhereItsRoomEnds) {
  const auto label_of = [](const std::string& name) {
    Statement statement = sample_statement();
    statement.lines[0].name = name;
    const std::string page = bill_html(statement);
    keep("names.html", page);
    const size_t begin = page.find("text-anchor=\"end\">") + 18;
    return page.substr(begin, page.find('<', begin) - begin);
  };
  EXPECT_EQ(label_of("pods of research-and-more"), "pods of research-and-more");
  EXPECT_EQ(label_of(std::string(60, 'W')), std::string(16, 'W') + "\u2026");
  EXPECT_EQ(label_of(std::string(60, 'l')), std::string(40, 'l') + "\u2026");
  EXPECT_EQ(label_of("a\nb"), "&quot;a\\nb&quot;");
  std::string wide, cut;
  for (int i = 0; i < 30; ++i) (i < 16 ? cut : wide) += "\u7814";
  EXPECT_EQ(label_of(cut + wide), cut + "\u2026");
  EXPECT_EQ(label_of(std::string(60, '&')).substr(0, 10), "&amp;&amp;") << "no half escape";
}

}  // namespace
}  // namespace gpuledger::app
