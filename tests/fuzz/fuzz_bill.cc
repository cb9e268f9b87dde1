// SPDX-License-Identifier: Apache-2.0
// What must hold of a whole bill whatever a Prometheus server answers: it is refused, or its lines add up to the meter
// and it can be written in every format. The input is the server's answers, a line each: the counters at the begin,
// after one hour and at the end; the starts; all scrapes of a step; the resets; who held GPUs; who did not use them;
// the looks at the meters; the looks there are; the grams of CO2e. Lines that are missing are answers without a series.

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/bill/allocation_json.h"
#include "app/bill/formats.h"
#include "app/bill/make_statement.h"
#include "base/text.h"
#include "invariant.h"

namespace {

using namespace gpuledger::app;
using gpuledger::Result;
using gpuledger::fuzz::has_no_control;
using gpuledger::fuzz::require;

constexpr std::chrono::sys_seconds kBegin{std::chrono::seconds(1'790'000'000)};
constexpr std::chrono::hours kStep{1};
constexpr std::string_view kCo2e = "grams";

size_t line_for(std::string_view query, std::chrono::sys_seconds at) {
  const bool of_span = query.find("s]") != query.npos;
  if (query.starts_with('{')) return of_span ? 4 : static_cast<size_t>((at - kBegin) / kStep);
  if (query == kCo2e) return 10;
  if (query.starts_with("process_start")) return 3;
  if (query.starts_with("resets")) return 5;
  if (query.find("allocation_info") != query.npos) return 6;
  if (query.find("allocation_idle") != query.npos) return 7;
  return query.find("vector(1)") != query.npos ? 9 : 8;
}

void check_statement(const Statement& statement) {
  require(statement.sum_millijoules() == statement.meter_millijoules, "the lines add up to the meter");
  for (const BillLine& line : statement.lines) {
    for (const auto& hours : {line.gpu_hours, line.allocated_gpu_hours, line.unused_gpu_hours})
      require(!hours || std::isfinite(*hours), "hours are a number");
    require(std::isfinite(line.cost()) && std::isfinite(line.co2e_grams), "a cost is a number");
  }
  for (const BillFormat& format : bill_formats()) {
    const std::string text = format.write(statement);
    require(!text.empty() && has_no_control(text, "\r\n"), "a bill is text and nothing else");
  }
  const auto json = nlohmann::json::parse(allocation_json({statement}, {true, false}), nullptr, false);
  require(json.is_object(), "JSON is JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  std::vector<std::string_view> lines;
  while (!text.empty()) lines.push_back(gpuledger::take_until(text, '\n'));
  size_t asked = 0;
  const BillAsk ask = [&](const std::string& query, std::chrono::sys_seconds at) -> Result<std::vector<BillSeries>> {
    require(++asked < 10'000, "a server is not asked without end");
    const size_t line = line_for(query, at);
    if (query == kCo2e && line >= lines.size()) return std::vector<BillSeries>{{{}, {{0, 380}}}};
    if (line >= lines.size() || lines[line].empty()) return std::vector<BillSeries>();
    return parse_answer(lines[line]);
  };
  BillQuery query;
  query.span = {kBegin, kBegin + 2 * kStep};
  query.step = kStep;
  query.co2e_series = kCo2e;
  BillView view;
  view.must_exist = false;
  view.spread = Spread::kByUse;
  view.prices.per_kwh = 0.3;
  view.prices.per_gpu_hour = {{"H200", 2}};
  const auto books = collect_books(ask, query);
  if (!books) {
    require(!books.error().message.empty(), "an error says something");
    return 0;
  }
  for (const auto& by : {std::vector<std::string>{"namespace"}, {"label:team", "user"}, {"pod"}}) {
    view.by = by;
    if (const auto statement = view_books(*books, view)) check_statement(*statement);
  }
  return 0;
}
