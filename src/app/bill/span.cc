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

// Of a month, or --to.
std::optional<sys_seconds> own_end(const Config& config) {
  if (config.bill_month) return sys_days((*config.bill_month + std::chrono::months(1)) / 1);
  return config.bill_to;
}

}  // namespace

Result<BillSpan> bill_span(const Config& config, sys_seconds now) {
  const int ways =
      int{config.bill_month.has_value()} + int{config.bill_from.has_value()} + int{config.bill_last.has_value()};
  if (ways != 1) return wrong("write one of --month=2026-10, --from=2026-10-01 and --last=24h");
  if (config.bill_to && !config.bill_from) return wrong("--to: needs --from");
  const sys_seconds newest = now - kOnTheWay;
  BillSpan span{newest, own_end(config).value_or(newest)};
  if (config.bill_month) span.begin = sys_days(*config.bill_month / 1);
  if (config.bill_from) span.begin = *config.bill_from;
  if (config.bill_last) span.begin = newest - std::chrono::ceil<seconds>(*config.bill_last);
  if (span.begin >= now) return wrong("the span of the bill has not begun yet");
  if (config.bill_to && *config.bill_to <= span.begin) return wrong("--to: is not after --from");
  if (span.end > now) span.end = newest;
  if (span.end <= span.begin) return wrong("the span of the bill has just begun; try again in half a minute");
  return span;
}

std::optional<sys_seconds> end_to_come(const Config& config, sys_seconds now) {
  const auto end = own_end(config);
  return end && *end > now ? end : std::nullopt;
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
