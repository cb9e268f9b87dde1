// SPDX-License-Identifier: Apache-2.0
// What must hold of a question to bill --serve whatever a client writes after the "?": sets that follow each other and
// are over, no more than a server can make, or one line that says what is wrong.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/bill/allocation_json.h"
#include "app/bill/allocation_question.h"
#include "app/bill/window.h"
#include "invariant.h"

using namespace gpuledger::app;
using gpuledger::fuzz::require;

namespace {

constexpr std::chrono::sys_seconds kNow{std::chrono::seconds(1'790'000'017)};

void check_message(const gpuledger::Error& error) {
  require(!error.message.empty() && error.message.find('\n') == std::string::npos, "an error is one line");
  const auto json = nlohmann::json::parse(allocation_error(400, error.message), nullptr, false);
  require(json.is_object() && json["code"] == 400, "an error can be written as JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto window = parse_window(text, kNow)) {
    require(window->begin <= window->end, "a window ends after it begins");
  } else {
    check_message(window.error());
  }
  if (const auto names = parse_allocation_question(text, kNow, AllocationForm::kNames)) {
    require(names->most_names >= 1 && names->most_names <= 1000, "some names and not all");
  } else {
    check_message(names.error());
  }
  const auto question = parse_allocation_question(text, kNow);
  if (!question) {
    check_message(question.error());
    return 0;
  }
  require(question->spans.size() <= 366, "no more sets than allowed");
  require(!question->by.empty(), "it is grouped by something");
  for (size_t i = 0; i < question->spans.size(); ++i) {
    const BillSpan& span = question->spans[i];
    require(span.begin < span.end && span.end <= kNow, "a set has a length and is over");
    if (i > 0) require(span.begin == question->spans[i - 1].end, "sets follow each other");
  }
  require(question->key() == parse_allocation_question(text, kNow)->key(), "the same question has the same key");
  if (question->filter) {
    std::set<std::string> properties;
    question->filter->add_properties_to(properties);
    require(!properties.empty(), "a filter compares something");
    (void)question->filter->matches([&](const std::string& property) {
      require(properties.contains(property), "a filter asks for what it names");
      return property;
    });
  }
  return 0;
}
