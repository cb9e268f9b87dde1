// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "app/bill/formats.h"
#include "app/bill/make_statement.h"
#include "app/bill/span.h"
#include "app/config/config.h"
#include "base/file.h"

namespace gpuledger::app {
namespace {

Spread spread_of(const std::string& word) {
  if (word == "use") return Spread::kByUse;
  return word == "allocation" ? Spread::kByAllocation : Spread::kKeep;
}

BillServer server_of(const Config& config) {
  return {*config.prometheus_url, config.prometheus_ca_file, config.prometheus_token_file,
          config.prometheus_password_file, config.query_timeout};
}

BillView view_of(const Config& config) {
  BillView view;
  view.by = config.bill_by;
  view.spread = spread_of(config.bill_spread);
  view.prices = {config.currency, config.price_per_kwh, config.price_per_gpu_hour, config.pue,
                 config.co2e_grams_per_kwh};
  view.server = config.prometheus_url->text;
  return view;
}

// Only for who watches.
void show_progress(size_t done, size_t all) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r%zu of %zu%s", done, all, done == all ? "\r\033[K" : "");
}

Status write_bill(const Config& config, const Statement& statement) {
  const auto formats = bill_formats();
  const auto format = std::find_if(formats.begin(), formats.end(),
                                   [&](const BillFormat& one) { return one.name == config.bill_format; });
  if (format == formats.end()) return Error{Code::kInternal, "--format: cannot write " + config.bill_format};
  const std::string text = format->write(statement);
  if (config.bill_output.empty()) return write_to_stdout(text);
  const Status written = write_file_atomically(config.bill_output, text);
  if (!written.ok()) return Error{written.error().code, "--output: " + written.error().message};
  return ok_status();
}

}  // namespace

Status bill_command(const Config& config, const ConfigSources& /*sources*/) {
  if (!config.prometheus_url) {
    return Error{Code::kMalformed, "write whom to ask: --prometheus-url=http://HOST:9090"};
  }
  if (config.co2e_grams_per_kwh && !config.co2e_series.empty()) {
    return Error{Code::kMalformed, "--co2e-series: not together with --co2e-grams-per-kwh"};
  }
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  BillQuery query;
  GL_TRY(span, bill_span(config, now));
  query.span = span;
  GL_TRY(step, bill_step(config, span));
  query.step = step;
  query.match = config.bill_match;
  query.co2e_grams_per_kwh = config.co2e_grams_per_kwh;
  query.co2e_series = config.co2e_series;
  BillServer for_co2e = server_of(config);
  for_co2e.deduplicate = true;
  query.ask_co2e = ask_server(std::move(for_co2e));
  GL_TRY(statement, make_statement(ask_server(server_of(config)), query, view_of(config), show_progress));
  GL_TRY_STATUS(write_bill(config, statement));
  if (statement.complete() || (config.allow_gaps && statement.sum_millijoules() == statement.meter_millijoules)) {
    return ok_status();
  }
  const BillGap& gap = statement.gaps.front();
  return Error{Code::kUnavailable,
               "the bill is incomplete: " + gap.node + " lacks " + time_text(gap.span.begin) + " to " +
                   time_text(gap.span.end) + ": " + gap.why +
                   (statement.gaps.size() > 1 ? "; and " + std::to_string(statement.gaps.size() - 1) + " more" : "") +
                   "; --allow-gaps accepts that"};
}

}  // namespace gpuledger::app
