// SPDX-License-Identifier: Apache-2.0
// What must hold of `gpu-ledger top` and `gpu-ledger job` whatever a server at --url answers: lines that fit the screen
// and hold nothing but text, numbers that are numbers. The input is what is typed, up to the first "{", and then one or
// two snapshots in lines of their own, the earlier one first.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "app/job/report.h"
#include "app/top/keys.h"
#include "app/top/table.h"
#include "invariant.h"

namespace {

using namespace gpuledger::app;
using gpuledger::fuzz::has_no_control;
using gpuledger::fuzz::require;

void check_screen(const top::Books& now, const top::Books* before, const top::View& view, top::Size size) {
  const top::Screen screen = top::write_screen(now, before, view, {"http://n:9400", "", ""}, size);
  require(size.rows == 0 || screen.lines.size() <= size.rows, "the lines fit the screen");
  for (const top::Line& line : screen.lines) {
    const std::string text = top::write_line(line, false, false);
    require(has_no_control(text), "a line is text and nothing else");
    require(top::columns_of(text) <= size.columns, "a line fits the screen");
  }
}

void check_job(const top::Books& books, const std::string& job) {
  const auto report = report_job(books, job);
  require(report.has_value(), "a job that an owner has");
  require(report->whole.alone.microjoules() >= 0 && report->whole.shared.microjoules() >= 0, "a sum is not negative");
  const std::string text = write_job_text(*report, 0.25);
  require(has_no_control(text, "\n"), "a report is lines of text");
  const auto json = nlohmann::json::parse(write_job_json(*report, 0.25), nullptr, false);
  require(json.is_object(), "JSON is JSON");
  const std::string line = write_job_line(*report, 0.25);
  require(line.find('\n') == line.size() - 1, "a line is one line");
  require(line.find("nan") == std::string::npos && line.find("inf") == std::string::npos, "a number is a number");
}

top::View view_of(std::string_view typed, const top::Books& books) {
  top::View view;
  top::Surroundings around;
  for (const auto& gpu : books.gpus) around.gpus.push_back(gpu.index);
  top::KeyReader reader;
  for (const top::Key& key : reader.take(typed)) (void)top::take_key(key, around, view);
  for (const top::Key& key : reader.flush()) (void)top::take_key(key, around, view);
  return view;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const size_t begin = std::min(text.find('{'), size);
  const size_t second = text.find("\n{", begin);
  const auto first = top::parse_books(text.substr(begin, second == text.npos ? second : second - begin));
  const auto last = second == text.npos ? first : top::parse_books(text.substr(second + 1));
  if (!last) return 0;
  const top::View view = view_of(text.substr(0, begin), *last);
  const top::Books* const before = first && second != text.npos ? &*first : nullptr;
  for (const top::Size screen : {top::Size{120, 0}, top::Size{80, 24}, top::Size{20, 3}})
    check_screen(*last, before, view, screen);
  std::set<std::string> jobs;
  for (const auto& owner : last->owners) jobs.insert(owner.job);
  for (const std::string& job : jobs) check_job(*last, job);
  return 0;
}
