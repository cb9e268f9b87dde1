// SPDX-License-Identifier: Apache-2.0
#include "app/bill/span.h"

#include "base/duration.h"

namespace gpuledger::app {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr hours kLongSpan{24 * 62};
constexpr int64_t kMostSteps = 20'000;

Error wrong(std::string message) {
  return {Code::kMalformed, std::move(message)};
}

}  // namespace

Result<BillSpan> bill_span(const Config& config, sys_seconds now) {
  const int ways =
      int{config.bill_month.has_value()} + int{config.bill_from.has_value()} + int{config.bill_last.has_value()};
  if (ways != 1) return wrong("write one of --month=2026-10, --from=2026-10-01 and --last=24h");
  if (config.bill_to && !config.bill_from) return wrong("--to: needs --from");
  BillSpan span{now, now};
  if (config.bill_month) {
    span = {sys_days(*config.bill_month / 1), sys_days((*config.bill_month + std::chrono::months(1)) / 1)};
  } else if (config.bill_from) {
    span = {*config.bill_from, config.bill_to.value_or(now)};
  } else {
    span.begin = now - std::chrono::ceil<seconds>(*config.bill_last);
  }
  if (span.begin >= now) return wrong("the span of the bill has not begun yet");
  if (span.end <= span.begin) return wrong("--to: is not after --from");
  span.end = std::min(span.end, now);
  return span;
}

Result<seconds> bill_step(const Config& config, const BillSpan& span) {
  const seconds length = span.end - span.begin;
  const seconds step = config.bill_step ? std::chrono::ceil<seconds>(*config.bill_step)
                                        : seconds(length > kLongSpan ? hours(6) : hours(1));
  if (length / step > kMostSteps) {
    return wrong("--step: " + write_duration(step) + " is too short for " + write_duration(length));
  }
  return step;
}

}  // namespace gpuledger::app
